// What useChat lacks for decisions: to send one at once, and to hear of others'.
// Copy this file. It needs nothing but fetch.
type Headers = Record<string, string>;
export type Chat = { api: string; id: string; headers?: () => Headers | Promise<Headers> };
export type Answer = 'approve' | 'deny' | 'fill' | 'edit' | 'respond';

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

// follow calls settled when somebody has decided: call resumeStream() then. It gives back what ends it.
export function follow(chat: Chat, settled: () => void): () => void {
  const end = new AbortController();
  void (async () => {
    for (let again = false; !end.signal.aborted; again = true) {
      try {
        const reader = (await ask(chat, 'events', { signal: end.signal })).body!.pipeThrough(new TextDecoderStream()).getReader();
        for (let text = '', chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
          const events = (text + chunk.value).split('\n\n');
          text = events.pop()!;
          if (events.some(e => e.startsWith('event: settled') || (again && e.startsWith('event: ready')))) settled();
        }
      } catch { /* the server is away: come back */ }
      await new Promise(done => setTimeout(done, 1000));
    }
  })();
  return () => end.abort();
}
