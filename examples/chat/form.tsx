// A form for what only a person can type, made of the request's JSON Schema.
import { useId } from 'react';
import { Shown } from './shown';

type Property = { type?: string; title?: string; description?: string; enum?: unknown[]; minLength?: number; maxLength?: number; pattern?: string; minimum?: number; maximum?: number };
export type Schema = { title?: string; properties?: Record<string, Property>; required?: string[] };

export function Fields({ schema }: { schema: Schema }) {
  return Object.entries(schema.properties ?? {}).map(([name, p]) => <Field key={name} name={name} p={p} required={schema.required?.includes(name) ?? false} />);
}

function Field({ name, p, required }: { name: string; p: Property; required: boolean }) {
  const id = useId(), help = p.description ? id + 'help' : undefined;
  const common = { id, name, 'aria-describedby': help, autoComplete: 'off' };
  const label = <label htmlFor={id}><Shown text={p.title ?? name} />{!required && p.type !== 'boolean' && ' (optional)'}</label>;
  const hint = help && <p className="hint" id={help}><Shown text={p.description!} /></p>;
  if (p.type === 'boolean') return <div className="field check"><input type="checkbox" {...common} />{label}{hint}</div>;
  if (p.enum) return (
    <div className="field">{label}
      <select {...common} required={required} defaultValue=""><option value="" />{p.enum.map((v, i) => <option key={i} value={JSON.stringify(v)}>{String(v)}</option>)}</select>{hint}
    </div>);
  if (p.type === 'integer' || p.type === 'number') return (
    <div className="field">{label}<input type="number" step={p.type === 'integer' ? 1 : 'any'} min={p.minimum} max={p.maximum} required={required} {...common} />{hint}</div>);
  if (p.type === 'string') return (
    <div className="field">{label}<input type="text" required={required && p.minLength !== 0} minLength={p.minLength} maxLength={p.maxLength} {...common} />{hint}</div>);
  return <div className="field">{label}<textarea rows={3} required={required} {...common} /><p className="hint" id={help}>as JSON <Shown text={p.description ?? ''} /></p></div>;
}

// valuesOf reads the form. The server checks them against the schema; what it says is shown.
export function valuesOf(form: HTMLFormElement, schema: Schema): Record<string, unknown> {
  const data = new FormData(form), out: Record<string, unknown> = {};
  for (const [name, p] of Object.entries(schema.properties ?? {})) {
    const text = String(data.get(name) ?? '');
    if (p.type === 'boolean') out[name] = data.get(name) !== null;
    else if (text === '' && !(schema.required?.includes(name) && p.type === 'string')) continue;
    else out[name] = p.enum || p.type !== 'string' ? JSON.parse(text) : text;
    if (p.type === 'integer' && !Number.isSafeInteger(out[name])) throw new Error(`${p.title ?? name}: a browser cannot hold this number exactly.`);
  }
  return out;
}
