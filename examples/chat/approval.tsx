// A tool call as a card: what the agent wants, all that it would run with, and who may say yes.
import { useId, useRef, useState } from 'react';
import { getToolName, type DynamicToolUIPart, type ToolUIPart } from 'ai';
import { Fields, valuesOf, type Schema } from './form';
import { decide, type Answer, type Chat } from './ringi';
import { Arguments, isAway, moneyOf, Shown, Value } from './shown';

export type ToolPart = ToolUIPart | DynamicToolUIPart;
// What Ringi says beside a tool part (docs/chat.md).
export type Asked = {
  type: 'data-ringi-request'; id?: string;
  data: { request: string; toolCallId: string; tool: string; kind: string; state: string; here: boolean; expiresAt?: string; link?: string; preview?: string; schema?: Schema };
};

type Look = 'asks' | 'waits' | 'runs' | 'done' | 'no' | 'unknown';
type Standing = { look: Look; word: string; before?: string; after: string; answer?: 'approval' | 'values' };

// standing is the one table from a part and its newest request to words.
function standing(part: ToolPart, asked?: Asked): Standing {
  const r = asked?.data, pending = r?.state === 'pending';
  if (part.state === 'output-available') return { look: 'done', word: 'Done', after: ' is done.' };
  if (part.state === 'output-error' && r?.state === 'expired') return { look: 'no', word: 'Expired', before: 'Nobody decided in time on ', after: '. It did not run.' };
  if (part.state === 'output-error' && r?.state === 'withdrawn') return { look: 'no', word: 'Withdrawn', after: ' was withdrawn. It did not run.' };
  if (part.state === 'output-error') return { look: 'no', word: 'Not done', after: ' came to nothing.' };
  if (part.state === 'output-denied' || part.approval?.approved === false) return { look: 'no', word: 'Denied', after: ' was denied. It did not run.' };
  if (pending && r.kind === 'outcome') return { look: 'unknown', word: 'Outcome unknown', after: ' was started, and nobody knows whether it ran.' };
  if (part.state === 'approval-requested') return { look: 'asks', word: 'Waits for you', before: 'The agent wants to run ', after: '.', answer: 'approval' };
  if (pending && r.here && r.schema) return { look: 'asks', word: 'Waits for you', after: ' needs what only a person can say.', answer: 'values' };
  if (pending) return { look: 'waits', word: 'Waits elsewhere', before: 'Somebody else decides on ', after: '.' };
  if (part.state === 'input-streaming') return { look: 'runs', word: 'Being written', before: 'The agent writes down a call of ', after: '.' };
  return { look: 'runs', word: 'Running', after: r ? ' was allowed and runs.' : ' runs.' };
}

export function waits(part: ToolPart, asked?: Asked) { return ['asks', 'waits', 'unknown'].includes(standing(part, asked).look); }

export function Call({ part, asked, chat }: { part: ToolPart; asked?: Asked; chat: Chat }) {
  const s = standing(part, asked), name = getToolName(part), heading = useRef<HTMLHeadingElement>(null), id = useId();
  if (!asked && !part.approval?.isAutomatic && s.look !== 'no') return <Read part={part} name={name} s={s} />;
  const input = part.input, money = moneyOf(input), reason = part.approval && 'reason' in part.approval ? part.approval.reason : undefined;
  const open = s.look !== 'done' && s.look !== 'no';
  const details = (
    <>
      {asked?.data.preview && <Preview text={asked.data.preview} />}
      {typeof input === 'string' && <p className="hint">A browser cannot hold this input exactly. It is shown as its text.</p>}
      {input !== null && typeof input === 'object' && Object.keys(input).length > 0 && <Arguments of={input} />}
      {typeof input === 'string' && <Value value={input} name="input" />}
    </>);
  return (
    <article className={'card ' + s.look} aria-labelledby={id}>
      <h3 id={id} ref={heading} tabIndex={-1}>{s.before}<strong><Shown text={name} /></strong>{s.after}</h3>
      <p className="chip">{s.word}</p>
      {money.map((m, i) => <p className="money" key={i}>{m}</p>)}
      {open ? details : <details><summary>What it was asked with</summary>{details}</details>}
      {reason && <p className="said"><span>Reason:</span> <Shown text={reason} /></p>}
      {part.state === 'output-error' && s.word === 'Not done' && <p className="said"><Shown text={part.errorText} /></p>}
      {part.state === 'output-available' && <details><summary>What came of it</summary><Result of={part.output} /></details>}
      {s.answer && asked && <Answers key={asked.data.request} {...{ part, asked, chat }} typed={s.answer === 'values'} done={() => heading.current?.focus()} />}
      {open && asked?.data.link && (
        <p className="elsewhere">
          <a href={asked.data.link} target="_blank" rel="noreferrer">{s.answer ? 'More ways to answer, in the inbox' : s.look === 'unknown' ? 'Say in the inbox what happened' : 'Open it in the inbox'}<span className="hide"> (new tab)</span></a>
          {asked.data.expiresAt && <Until at={asked.data.expiresAt} />}
        </p>)}
    </article>);
}

// Read is a call that nobody was asked about: one line.
function Read({ part, name, s }: { part: ToolPart; name: string; s: Standing }) {
  return (
    <details className={'read ' + s.look}>
      <summary><Shown text={name} /> <span>{s.look === 'done' ? 'done' : s.word.toLowerCase()}</span></summary>
      {part.input !== null && typeof part.input === 'object' && <Arguments of={part.input} />}
      {part.state === 'output-available' && <Result of={part.output} />}
    </details>);
}

function Result({ of }: { of: unknown }) {
  return of === null || of === undefined ? <p className="hint">It is not shown here.</p> : <div className="result"><Value value={of} name="result" /></div>;
}

function Preview({ text }: { text: string }) {
  return <div className="preview" role="group" tabIndex={0} aria-label="Preview">{text.replace(/\n+$/, '').split('\n').map((line, i) =>
    <div key={i} className={/^\+ /.test(line) ? 'plus' : /^- /.test(line) ? 'minus' : undefined}>{line ? <Shown text={line} /> : '\u00a0'}</div>)}</div>;
}

function Until({ at }: { at: string }) {
  const when = new Date(at), today = when.toDateString() === new Date().toDateString();
  return <span>until <time dateTime={at}>{when.toLocaleString([], today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' })}</time></span>;
}

// Answers sends one answer at once, with the part as it is drawn; what follows comes by follow.
function Answers({ part, asked, chat, typed, done }: { part: ToolPart; asked: Asked; chat: Chat; typed: boolean; done: () => void }) {
  const [denying, setDenying] = useState(false), [busy, setBusy] = useState(false), [problem, setProblem] = useState(''), [reason, setReason] = useState('');
  const form = useRef<HTMLFormElement>(null), deny = useRef<HTMLButtonElement>(null), id = useId();
  const send = async (answer: Answer, more: () => { reason?: string; values?: unknown } = () => ({})) => {
    if (busy) return;
    setBusy(true);
    setProblem('');
    try {
      await decide(chat, typed ? asked : part, answer, more());
      done();
    } catch (e) {
      setProblem(isAway(e) ? 'The server does not answer. Try again when it is back.' : (e as Error).message);
      setBusy(false);
    }
  };
  return (
    <div className="answers" aria-busy={busy}>
      {typed && (
        <form ref={form} hidden={denying} onSubmit={e => { e.preventDefault(); void send('fill', () => ({ values: valuesOf(e.currentTarget, asked.data.schema!) })); }}>
          {asked.data.schema?.title && <h4><Shown text={asked.data.schema.title} /></h4>}
          <Fields schema={asked.data.schema!} />
          <button type="submit" className="primary" aria-disabled={busy}>Send and run</button>
          <button type="button" ref={deny} onClick={() => setDenying(true)}>Deny…</button>
        </form>)}
      {!typed && !denying && (
        <div className="row">
          <button type="button" className="primary" aria-disabled={busy} onClick={() => void send('approve')}>{busy ? 'Sending…' : 'Approve'}</button>
          <button type="button" ref={deny} aria-disabled={busy} onClick={() => !busy && setDenying(true)}>Deny…</button>
        </div>)}
      {denying && (
        <form onSubmit={e => { e.preventDefault(); void send('deny', () => ({ reason })); }}>
          <label htmlFor={id}>Why not? The agent reads it (optional)</label>
          <textarea id={id} rows={2} maxLength={2000} autoFocus value={reason} onChange={e => setReason(e.target.value)} />
          <button type="submit" className="danger" aria-disabled={busy}>Deny</button>
          <button type="button" onClick={() => { setDenying(false); setTimeout(() => deny.current?.focus()); }}>Back</button>
        </form>)}
      {problem && <p className="problem" role="alert" ref={e => e?.scrollIntoView({ block: 'nearest' })}><Shown text={problem} prose /></p>}
    </div>);
}
