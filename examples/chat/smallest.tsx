// A chat with approvals, whole (React 19). ringi.ts stands beside it.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai';
import { useEffect, useRef } from 'react';
import { follow } from './ringi'; // examples/chat/ringi.ts: copy it

const api = 'https://agents.example.com/v1/chat/support';

export function Chat({ id, initial, headers }: { id: string; initial: UIMessage[]; headers: () => Promise<Record<string, string>> }) {
  const chat = useChat({
    id, messages: initial, resume: true, // initial: GET {api}/{id}/messages
    transport: new DefaultChatTransport({ api, headers }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const now = useRef(chat);
  now.current = chat;
  useEffect(() => follow({ api, id, headers }, () => now.current.status === 'ready' && now.current.resumeStream()), [id]);
  return (
    <>
      {chat.messages.map(m => m.parts.map((p, i) => {
        if (p.type === 'text') return <p key={m.id + i}>{p.text}</p>;
        if (!isToolUIPart(p) || p.state !== 'approval-requested') return null;
        const answer = (approved: boolean) => void chat.addToolApprovalResponse({ id: p.approval.id, approved });
        return (
          <form key={m.id + i}>
            <h3>{getToolName(p)}</h3><pre>{JSON.stringify(p.input, null, 2)}</pre>
            <button formAction={() => answer(true)}>Approve</button>
            <button formAction={() => answer(false)}>Deny</button>
          </form>);
      }))}
      <form action={said => void chat.sendMessage({ text: String(said.get('text')) })}><input name="text" /></form>
    </>);
}
