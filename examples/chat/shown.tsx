// What came from a model or from outside, drawn so that nobody takes it for something else.
import { useId } from 'react';

// Characters that are not seen, or turn round what is: Unicode's controls, format characters, odd
// spaces and fillers. In prose those that real text needs (line ends, joiners) stand as they are.
const hidden = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u2000-\u200a\u202f\u205f\u3000\u3164\uffa0\ufe00-\ufe0f]/u;
const harmless = /[\n\t]/, joins = /[\n\t\u00a0\u200c\u200d\ufe0e\ufe0f]/;

export function Shown({ text, prose = false }: { text: string; prose?: boolean }) {
  const out: React.ReactNode[] = [];
  let plain = '';
  for (const c of text) {
    if (!hidden.test(c) || (prose ? joins : harmless).test(c)) { plain += c; continue; }
    out.push(plain, <mark key={out.length}>{'U+' + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}</mark>);
    plain = '';
  }
  return <bdi>{out}{plain}</bdi>;
}

const long = 240;

// Value shows one argument whole: a long text in a box of its own, with its length.
export function Value({ value, name }: { value: unknown; name: string }) {
  const label = useId();
  if (Array.isArray(value)) return value.length ? <ol start={0}>{value.map((v, i) => <li key={i}><Value value={v} name={`${name} ${i}`} /></li>)}</ol> : <i>empty list</i>;
  if (value !== null && typeof value === 'object') return Object.keys(value).length ? <Arguments of={value} /> : <i>empty object</i>;
  if (typeof value !== 'string') return <code>{String(value)}</code>;
  if (value === '') return <i>empty text</i>;
  const characters = [...value].length, lines = value.split('\n').length;
  if (characters <= long && lines <= 6) return <Shown text={value} />;
  return (
    <>
      <span className="count" id={label}>{characters.toLocaleString('en')} characters{lines > 1 && `, ${lines.toLocaleString('en')} lines`}</span>
      <div className="long" role="group" tabIndex={0} aria-labelledby={label}><Shown text={value} /></div>
    </>);
}

export function Arguments({ of }: { of: object }) {
  return (
    <dl className="arguments">
      {Object.entries(of).map(([name, value]) => (
        <div key={name}><dt><Shown text={name} /></dt><dd><Value value={value} name={name} /></dd></div>))}
    </dl>);
}

// moneyOf reads a whole number of cents beside a currency. Other money is among the arguments, as it is.
export function moneyOf(input: unknown): string[] {
  if (input === null || typeof input !== 'object') return [];
  const { currency, ...rest } = input as Record<string, unknown>;
  if (!['EUR', 'USD', 'GBP', 'CHF', 'PLN', 'SEK', 'NOK', 'DKK', 'CZK', 'CAD', 'AUD', 'NZD'].includes(String(currency))) return [];
  return Object.entries(rest).filter(([name, v]) => name.endsWith('_cents') && Number.isSafeInteger(v) && (v as number) >= 0).map(([, v]) => {
    const digits = String(v).padStart(3, '0'); // no floating point near money
    return `${digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, '\u202f')}.${digits.slice(-2)} ${currency}`;
  });
}

// isAway tells a server that nobody reached, or a proxy's page in its place, from what Ringi says.
export function isAway(e: unknown) {
  return e instanceof TypeError || (e instanceof Error && /^\s*($|<|Failed to fetch)/.test(e.message));
}
