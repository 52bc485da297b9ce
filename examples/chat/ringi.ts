// What useChat lacks for decisions: to send one at once, and to hear of others'.
// Copy this file. It needs nothing but fetch.
export type Chat = { api: string; id: string; headers?: () => Record<string, string> | Promise<Record<string, string>> };
export type Answer = 'approve' | 'deny' | 'fill' | 'edit' | 'respond';

const wait = (ms: number) => new Promise(done => setTimeout(done, ms));
const ask = async (chat: Chat, path: string, init: RequestInit = {}) => fetch(`${chat.api}/${encodeURIComponent(chat.id)}/${path}`, {
  ...init, credentials: 'include', headers: { 'content-type': 'application/json', ...(await chat.headers?.()) },
});

// decide sends one answer, with the part as it was shown: a tool part, or a data-ringi-request.
export async function decide(chat: Chat, part: unknown, answer: Answer, more: { reason?: string; values?: unknown; input?: unknown; result?: unknown } = {}) {
  const res = await ask(chat, 'decisions', { method: 'POST', body: JSON.stringify({ part, answer, ...more }) });
  if (!res.ok) throw new Error(await res.text());
  return res.json() as Promise<{ request: string; state: string; remaining: number }>;
}

// stop ends the run; useChat's own stop() only stops listening to it.
export const stop = (chat: Chat) => ask(chat, 'stop', { method: 'POST', body: '{}' });

// follow calls resume when somebody may have decided, one call at a time; false from it means: not now, again. It gives back what ends it.
export function follow(chat: Chat, resume: () => unknown): () => void {
  const end = new AbortController();
  let due = false;
  void (async () => { // what is due is told
    for (; !end.signal.aborted; await wait(50)) if (due) { due = false; try { due = (await resume()) === false; } catch { due = true; await wait(1000); } }
  })();
  void (async () => { // what is heard is due
    for (; !end.signal.aborted; await wait(1000)) try {
      const reader = (await ask(chat, 'events', { signal: end.signal })).body!.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = '', chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
        const events = (text + chunk.value).split('\n\n');
        text = events.pop()!;
        due ||= events.some(e => /^event: (settled|ready)/.test(e)); // ready: from here on nothing is missed
      }
    } catch { /* the server is away: come back */ }
  })();
  return () => end.abort();
}
