import { useEffect, useMemo, useRef, useState, type FormEvent } from 'react';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, isToolUIPart, type UIMessage } from 'ai';
import { Call, waits, type Asked } from './approval';
import { follow, stop } from './ringi';
import { isAway, Shown } from './shown';

const tries = ['Mira Solheim asks for a refund for a broken kettle.', 'Refund the lost parcels A-1031, A-1032 and A-1033.',
  'Amara Okafor is on the telephone: cancel order A-1057.', 'Write to the customer of order A-1071.'];

export function Chat({ api, id, initial }: { api: string; id: string; initial: UIMessage[] }) {
  const transport = useMemo(() => new DefaultChatTransport({ api }), [api]);
  const at = useMemo(() => ({ api, id }), [api, id]);
  const chat = useChat({ id, messages: initial, transport, experimental_throttle: 50 });
  const [draft, setDraft] = useState('');
  const now = useRef(chat);
  now.current = chat;
  const busy = chat.status === 'submitted' || chat.status === 'streaming';

  // What others decide, and what went on while the server or the network was away.
  useEffect(() => follow(at, async () => {
    const c = now.current;
    if (c.status === 'submitted' || c.status === 'streaming') return false;
    if (c.status === 'error') setDraft(await takeBack(c, at));
    await c.resumeStream();
  }), [at]);

  const messages = useSteady(chat.messages, busy);
  const last = messages.at(-1), waiting = last?.role === 'assistant' ? parts(last).filter(x => x.tool && waits(x.tool, x.asked)).length : 0;
  const say = (text: string) => {
    if (busy || waiting || !text.trim()) return;
    setDraft('');
    void chat.sendMessage({ text: text.trim() });
  };
  const state = busy ? 'The agent is working…' : waiting ? `${waiting === 1 ? 'A decision is' : waiting + ' decisions are'} needed.` : '';
  const bottom = useBottom(messages, waiting);
  return (
    <>
      <main>
        <h2 className="hide">Conversation</h2>
        {messages.length === 0 && (
          <div className="tries"><p>Ask the back office. It looks things up by itself, and asks before it changes anything.</p>
            <ul>{tries.map(t => <li key={t}><button type="button" onClick={() => say(t)}>{t}</button></li>)}</ul></div>)}
        <ol className="messages">{messages.map(m => <li key={m.id} className={m.role}><Message message={m} chat={at} /></li>)}</ol>
        {chat.status === 'error' && <p className="problem" role="alert">{isAway(chat.error) ? 'The server does not answer. The chat goes on when it is back.' : <Shown text={chat.error?.message ?? ''} prose />}</p>}
        <div ref={bottom} />
      </main>
      <Composer {...{ draft, setDraft, state }} stops={busy || waiting > 0} say={say} onStop={() => void stop(at)} />
    </>);
}

// takeBack reads the chat anew after a failure, and gives back the words that never arrived.
async function takeBack(c: ReturnType<typeof useChat>, at: { api: string; id: string }): Promise<string> {
  const res = await fetch(`${at.api}/${encodeURIComponent(at.id)}/messages`);
  if (!res.ok) throw new Error(await res.text());
  const stored: UIMessage[] = await res.json(), last = c.messages.at(-1);
  const lost = last?.role === 'user' && stored.filter(m => m.role === 'user').length < c.messages.filter(m => m.role === 'user').length;
  c.setMessages(stored);
  c.clearError();
  return lost ? last.parts.map(p => (p.type === 'text' ? p.text : '')).join('') : '';
}

// parts pairs every tool part with the newest request about it.
function parts(m: UIMessage) {
  const asked = new Map<string, Asked>();
  for (const p of m.parts) if (p.type === 'data-ringi-request') asked.set((p as Asked).data.toolCallId, p as Asked);
  return m.parts.filter(p => p.type !== 'data-ringi-request' && p.type !== 'step-start').map((p, i) =>
    isToolUIPart(p) ? { key: p.toolCallId, tool: p, asked: asked.get(p.toolCallId) } : { key: p.type + i, text: p });
}

function Message({ message, chat }: { message: UIMessage; chat: { api: string; id: string } }) {
  return (
    <>
      <p className="hide">{message.role === 'user' ? 'You' : 'Agent'}:</p>
      {parts(message).map(({ key, tool, asked, text }) =>
        tool ? <Call key={key} part={tool} asked={asked} chat={chat} />
        : text.type === 'text' ? <p key={key} className="text"><Shown text={text.text} prose /></p>
        : text.type === 'reasoning' ? <details key={key} className="reasoning" open={text.state === 'streaming'}><summary>Thinking</summary><p className="text"><Shown text={text.text} prose /></p></details>
        : null)}
    </>);
}

function Composer({ draft, setDraft, state, stops, say, onStop }: { draft: string; setDraft: (s: string) => void; state: string; stops: boolean; say: (s: string) => void; onStop: () => void }) {
  const submit = (e: FormEvent) => { e.preventDefault(); say(draft); };
  return (
    <form className="composer" onSubmit={submit} aria-label="Your message">
      <p role="status">{state}</p>
      <div className="row">
        <label className="hide" htmlFor="message">Message</label>
        <textarea id="message" rows={1} placeholder="Message" value={draft} onChange={e => setDraft(e.target.value)}
          onKeyDown={e => { if (e.key === 'Enter' && !e.shiftKey && !e.nativeEvent.isComposing) submit(e); }} />
        {stops ? <button type="button" onClick={onStop}>Stop</button> : <button type="submit" className="primary" aria-disabled={!draft.trim()}>Send</button>}
      </div>
    </form>);
}

// useSteady keeps what is drawn while a stream tells the newest message once more from its first
// part: a card that somebody reads, or types a reason into, does not go and come back.
function useSteady(messages: UIMessage[], busy: boolean): UIMessage[] {
  const drawn = useRef(messages);
  const old = drawn.current.at(-1), last = messages.at(-1);
  if (!(busy && old && last?.id === old.id && messages.length === drawn.current.length && last.parts.length < old.parts.length)) drawn.current = messages;
  return drawn.current;
}

// useBottom keeps the newest in sight for whoever is at the end already.
function useBottom(messages: UIMessage[], waiting: number) {
  const bottom = useRef<HTMLDivElement>(null), near = useRef(true);
  useEffect(() => {
    const look = () => { near.current = innerHeight + scrollY > document.documentElement.scrollHeight - 120; };
    addEventListener('scroll', look, { passive: true });
    return () => removeEventListener('scroll', look);
  }, []);
  useEffect(() => { if (near.current) bottom.current?.scrollIntoView({ block: 'end' }); }, [messages, waiting]);
  return bottom;
}
