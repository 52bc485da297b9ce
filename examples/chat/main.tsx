import { StrictMode, useCallback, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import type { UIMessage } from 'ai';
import { Chat } from './chat';
import './style.css';

const api = '/v1/chat/office';
const server = import.meta.env.VITE_RINGI ?? 'http://localhost:7464'; // where people log in

// The chat's id is in the address: a reload, or another tab, is the same chat.
function idOfPage() {
  const id = location.hash.slice(1) || crypto.randomUUID();
  if (!location.hash) history.replaceState(null, '', '#' + id);
  return id;
}

type Read = { id: string; messages: UIMessage[] } | { id: string; problem: 'login' | 'away' };

async function read(id: string): Promise<Read> {
  try {
    const res = await fetch(`${api}/${encodeURIComponent(id)}/messages`);
    if (res.status === 401) return { id, problem: 'login' };
    if (res.ok) return { id, messages: await res.json() };
  } catch { /* away */ }
  return { id, problem: 'away' };
}

function Page() {
  const [chat, setChat] = useState<Read>();
  const load = useCallback(() => void read(idOfPage()).then(setChat), []);
  useEffect(() => {
    load();
    addEventListener('hashchange', load);
    return () => removeEventListener('hashchange', load);
  }, [load]);
  return (
    <>
      <header>
        <h1>Back office</h1>
        <button type="button" className="quiet" onClick={() => { location.hash = crypto.randomUUID(); }}>New chat</button>
        <a href={server}>Inbox</a>
      </header>
      {!chat ? <main /> : 'messages' in chat ? <Chat key={chat.id} api={api} id={chat.id} initial={chat.messages} /> : (
        <main className="alone">
          <p>{chat.problem === 'login' ? <>Log in at <a href={server}>{server}</a> first: the chat takes the same login.</> : 'The server does not answer.'}</p>
          <button type="button" onClick={load}>Try again</button>
        </main>)}
    </>
  );
}

createRoot(document.getElementById('root')!).render(<StrictMode><Page /></StrictMode>);
