// A page with useChat of @ai-sdk/react, without a browser: React over jsdom. It
// says one line a scenario: {"name","ok","error"}.
import { readFileSync, writeFileSync } from 'node:fs';
import { JSDOM } from 'jsdom';
import ts from 'typescript';
import * as ai from 'ai';

const dom = new JSDOM('<div id="root"></div>', { url: 'http://localhost/' });
globalThis.window = dom.window;
globalThis.document = dom.window.document;
globalThis.navigator ??= dom.window.navigator;
const React = await import('react');
const { createRoot } = await import('react-dom/client');
const { useChat } = await import('@ai-sdk/react');

const [world, major, ringiTS] = process.argv.slice(2);
writeFileSync('ringi.mjs', ts.transpileModule(readFileSync(ringiTS, 'utf8'), { compilerOptions: { module: 'esnext', target: 'es2022' } }).outputText);
const ringi = await import(process.cwd() + '/ringi.mjs');

const predicate = ai.lastAssistantMessageIsCompleteWithApprovalResponses;
const headers = () => ({ 'x-user': 'ana', 'ringi-ai-sdk': major });
const sleep = ms => new Promise(done => setTimeout(done, ms));

async function until(what, test, ms = 8000) {
  const end = Date.now() + ms;
  for (;;) {
    let got;
    try { got = await test(); } catch { got = false; }
    if (got) return got;
    if (Date.now() > end) throw new Error('never: ' + what);
    await sleep(10);
  }
}

function equal(got, want, what) {
  const a = JSON.stringify(got), b = JSON.stringify(want);
  if (a !== b) throw new Error(`${what}: got ${a}, want ${b}`);
}

// shop is a server of its own; ctl is what else happens in the world.
async function shop(how = '') {
  const [api, beside] = (await (await fetch(`${world}/new?${how}`)).text()).split(' ');
  const ctl = async (what, more = {}) => {
    const res = await fetch(`${beside}/${what}?${new URLSearchParams(more)}`, { method: 'POST' });
    const text = await res.text();
    if (!res.ok) throw new Error(`${what}: ${text}`);
    return text ? JSON.parse(text) : null;
  };
  return { api, ctl };
}

// page mounts a chat. posts are the bodies that it sent.
async function page(s, options = {}) {
  const id = options.id ?? 'chat-1';
  const p = { id, posts: [], gets: 0, errors: [], finished: 0 };
  const initial = options.messages ?? await (await fetch(`${s.api}/${id}/messages`, { headers: headers() })).json();
  await checked(initial);
  const transport = new ai.DefaultChatTransport({
    api: s.api, headers,
    fetch: (url, init) => {
      if (init.method === 'POST') p.posts.push(JSON.parse(init.body)); else p.gets++;
      p.lastHeaders = init.headers;
      return fetch(url, { ...init, body: options.hostile ? options.hostile(init.body) : init.body });
    },
    ...options.transport,
  });
  function Page() {
    p.chat = useChat({
      id, messages: initial, transport, resume: options.resume ?? false,
      sendAutomaticallyWhen: options.predicate ?? predicate,
      onToolCall: options.onToolCall && (({ toolCall }) => options.onToolCall(toolCall, p)),
      onError: e => p.errors.push(e.message),
      onFinish: () => p.finished++,
    });
    return null;
  }
  const root = createRoot(document.createElement('div'));
  root.render(React.createElement(Page));
  p.close = () => root.unmount();
  await until('mounted', () => p.chat);
  p.tools = () => p.chat.messages.at(-1)?.parts.filter(ai.isToolUIPart) ?? [];
  p.states = () => p.tools().map(t => t.state).join(' ');
  p.text = () => p.chat.messages.at(-1)?.parts.filter(x => x.type === 'text').map(x => x.text).join('|');
  p.ready = () => until('ready, but ' + p.chat.status + ' ' + p.errors, () => p.chat.status === 'ready');
  p.say = async text => {
    const n = p.chat.messages.length;
    await p.chat.sendMessage({ text });
    await until('an answer, but ' + p.errors, () => p.chat.status === 'ready' && p.chat.messages.length === n + 2);
  };
  p.failed = () => until('error', () => p.chat.status === 'error' && p.errors.length);
  p.chatAt = { api: s.api, id, headers };
  return p;
}

// checked passes messages through the SDK's own check.
async function checked(messages) {
  if (messages.length) await ai.validateUIMessages({ messages });
}

async function stored(s, id = 'chat-1') {
  const got = await (await fetch(`${s.api}/${id}/messages`, { headers: headers() })).json();
  await checked(got);
  return got;
}

const scenarios = {
  async 'text streams'() {
    const s = await shop(), p = await page(s);
    await p.say('hello');
    equal(p.text(), 'You said hello.', 'text');
    await p.say('again');
    equal(p.chat.messages.map(m => m.role), ['user', 'assistant', 'user', 'assistant'], 'roles');
    equal((await stored(s)).length, 4, 'stored');
  },
  async 'B49 B90 B95 B96 approve'() {
    const s = await shop(), p = await page(s);
    await p.say('pay');
    equal(p.states(), 'approval-requested', 'states');
    const before = p.tools()[0].approval;
    if (!before.signature) throw new Error('B90: no signature');
    await checked(await stored(s));
    void p.chat.addToolApprovalResponse({ id: before.id, approved: true });
    await until('output', () => p.states() === 'output-available');
    await p.ready();
    equal(p.posts.length, 2, 'B96 posts');
    const sent = p.posts[1].messages.at(-1).parts.find(ai.isToolUIPart).approval;
    equal(sent.signature, before.signature, 'B95 signature');
    equal(await s.ctl('paid'), ['{"to":"bob","amount":10}'], 'paid');
    equal(p.chat.messages.length, 2, 'the same message goes on');
    equal(p.chat.messages.at(-1).parts.filter(x => x.type === 'step-start').length, 2, 'steps');
    equal(p.text(), 'I will.|Done: pay ok.', 'text');
    await checked(p.chat.messages);
    equal((await stored(s)).at(-1).parts.find(ai.isToolUIPart).state, 'output-available', 'stored');
  },
  async 'B56 B92 B98 deny'() {
    const s = await shop(), p = await page(s);
    await p.say('pay');
    equal(predicate({ messages: p.chat.messages }), false, 'B98');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: false, reason: 'too dear' });
    await until('denied', () => p.states() === 'output-denied');
    await p.ready();
    equal(await s.ctl('paid'), [], 'paid');
    equal(p.text(), 'I will.|Done: pay denied.', 'text');
    equal(p.posts.length, 2, 'posts');
    await checked(p.chat.messages);
    await stored(s);
  },
  async 'B97 headers and body go along'() {
    const s = await shop(), p = await page(s);
    await p.say('pay');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true, options: { headers: { 'x-more': 'yes' }, body: { extra: 1 } } });
    await until('output', () => p.states() === 'output-available');
    equal([p.posts[1].extra, p.lastHeaders['x-more']], [1, 'yes'], 'options');
  },
  async 'B60 two requests in one turn, both here'() {
    const s = await shop(), p = await page(s);
    await p.say('pay twice');
    equal(p.states(), 'approval-requested approval-requested', 'states');
    const [a, b] = p.tools();
    await p.chat.addToolApprovalResponse({ id: a.approval.id, approved: true });
    equal(p.posts.length, 1, 'the first answer alone is not sent');
    void p.chat.addToolApprovalResponse({ id: b.approval.id, approved: false });
    await until('done', () => p.states() === 'output-available output-denied');
    await p.ready();
    equal(await s.ctl('paid'), ['{"to":"bob","amount":10}'], 'paid');
    await checked(p.chat.messages);
  },
  async 'two requests, one here and one in the inbox'() {
    const s = await shop(), p = await page(s);
    await p.say('pay twice');
    const end = ringi.follow(p.chatAt, () => p.chat.status === 'ready' && p.chat.resumeStream());
    const [a, b] = p.tools();
    await ringi.decide(p.chatAt, a, 'approve');
    await until('the first is answered', () => p.states().startsWith(major === '6' ? 'input-available' : 'approval-responded'));
    await p.ready();
    equal(await s.ctl('paid'), [], 'nothing is paid while its sibling waits');
    await s.ctl('decide', { request: b.approval.id, answer: 'approve', by: 'boss' });
    await until('both ran, but ' + p.states(), () => p.states() === 'output-available output-available');
    await p.ready();
    end();
    equal((await s.ctl('paid')).length, 2, 'paid');
    equal(p.posts.length, 1, 'posts');
    await checked(p.chat.messages);
    await checked(await stored(s));
  },
  async 'denied in the inbox beside one that is answered here'() {
    const s = await shop(), p = await page(s);
    await p.say('pay twice');
    const [a, b] = p.tools();
    await s.ctl('decide', { request: a.approval.id, answer: 'deny', by: 'boss' });
    await p.chat.resumeStream();
    await p.ready();
    void p.chat.addToolApprovalResponse({ id: b.approval.id, approved: true });
    await until('done, but ' + p.states() + p.errors, () => p.chat.status === 'ready' && p.tools()[1].state === 'output-available');
    equal(await s.ctl('paid'), ['{"to":"eve","amount":20}'], 'paid');
    equal(p.posts.length, 2, 'posts');
    await stored(s);
  },
  async 'edited in the inbox'() {
    const s = await shop(), p = await page(s);
    await p.say('pay');
    const end = ringi.follow(p.chatAt, () => p.chat.status === 'ready' && p.chat.resumeStream());
    const old = p.tools()[0].approval.id;
    await s.ctl('decide', { request: old, answer: 'edit', by: 'boss', input: '{"to":"bob","amount":5}' });
    await until('the new input is asked about', () => p.tools()[0].state === 'approval-requested' && p.tools()[0].approval.id !== old);
    equal(p.tools()[0].input, { to: 'bob', amount: 5 }, 'input');
    await p.ready();
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await until('done', () => p.states() === 'output-available');
    end();
    equal(await s.ctl('paid'), ['{"to":"bob","amount":5}'], 'paid');
    await stored(s);
  },
  async 'may not decide: waits elsewhere, settles'() {
    const s = await shop('deciders=boss'), p = await page(s);
    await p.say('pay');
    equal(p.states(), 'input-available', 'states');
    if (JSON.stringify(p.chat.messages).includes('signature')) throw new Error('S-05: a signed part');
    const data = p.chat.messages.at(-1).parts.find(x => x.type === 'data-ringi-request').data;
    equal([data.here, data.state], [false, 'pending'], 'data');
    const end = ringi.follow(p.chatAt, () => p.chat.status === 'ready' && p.chat.resumeStream());
    await s.ctl('decide', { request: data.request, answer: 'approve', by: 'boss' });
    await until('done', () => p.states() === 'output-available');
    end();
    await checked(p.chat.messages);
  },
  async 'reload in the middle'() {
    const s = await shop(), p = await page(s);
    void p.chat.sendMessage({ text: 'slow' });
    await s.ctl('gate', { n: 2 });
    await until('half', () => p.text() === 'part0 part1 ');
    p.close();
    const q = await page(s, { resume: true });
    await until('half again', () => q.text() === 'part0 part1 ');
    await s.ctl('gate', { n: 2 });
    await until('whole', () => q.text() === 'part0 part1 part2 part3 ');
    await q.ready();
    equal(q.chat.messages.length, 2, 'messages');
    equal((await s.ctl('prompts')), 1, 'the model was asked once');
    await q.chat.resumeStream();
    await q.ready();
    equal(q.text(), 'part0 part1 part2 part3 ', '204 leaves the chat alone');
  },
  async 'server killed while it waits'() {
    const s = await shop('sqlite=1'), p = await page(s);
    await p.say('pay');
    await s.ctl('restart');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await until('done', () => p.states() === 'output-available');
    await p.ready();
    equal(await s.ctl('paid'), ['{"to":"bob","amount":10}'], 'paid');
  },
  async 'server killed while it speaks'() {
    const s = await shop('sqlite=1'), p = await page(s);
    void p.chat.sendMessage({ text: 'slow' });
    await s.ctl('gate', { n: 1 });
    await until('begun', () => p.text() === 'part0 ');
    await s.ctl('restart');
    await until('cut', () => p.chat.status === 'error' || p.chat.status === 'ready');
    await s.ctl('gate', { n: 8 });
    await until('whole', async () => {
      if (p.chat.status === 'error' || p.chat.status === 'ready') await p.chat.resumeStream();
      return p.text() === 'part0 part1 part2 part3 ';
    }, 15000);
    equal(p.chat.messages.length, 2, 'messages');
    await stored(s);
  },
  async 'hostile: another input in the echoed part'() {
    const s = await shop(), p = await page(s, { hostile: b => b && b.replaceAll('"amount":10', '"amount":1') });
    await p.say('pay');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await p.failed();
    equal(await s.ctl('paid'), [], 'paid');
    if (!p.errors[0].includes('What was shown')) throw new Error('it does not say why: ' + p.errors);
  },
  async 'hostile: an approval of another chat'() {
    const s = await shop(), p = await page(s), q = await page(s, { id: 'chat-2' });
    await p.say('pay');
    await q.say('pay');
    const mine = p.tools()[0].approval, other = q.tools()[0].approval;
    const r = await page(s, { messages: p.chat.messages, hostile: b => b && b.replaceAll(mine.id, other.id).replaceAll(mine.signature, other.signature) });
    void r.chat.addToolApprovalResponse({ id: mine.id, approved: true });
    await r.failed();
    equal(await s.ctl('paid'), [], 'paid');
  },
  async 'hostile: the same answer again'() {
    const s = await shop(), p = await page(s);
    await p.say('pay');
    const before = structuredClone(p.chat.messages);
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await until('done', () => p.states() === 'output-available');
    await p.ready();
    const q = await page(s, { messages: before });
    void q.chat.addToolApprovalResponse({ id: q.tools()[0].approval.id, approved: true });
    await until('it only tells what came of it', () => q.states() === 'output-available');
    equal((await s.ctl('paid')).length, 1, 'paid');
  },
  async 'any answered: posts once, not for ever'() {
    const s = await shop(), p = await page(s, { predicate: ({ messages }) => messages.at(-1)?.parts.some(x => ai.isToolUIPart(x) && x.state === 'approval-responded') });
    await p.say('pay twice');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await p.failed();
    await sleep(200);
    if (p.posts.length > 3) throw new Error('posted ' + p.posts.length + ' times');
  },
  async 'stop'() {
    const s = await shop(), p = await page(s);
    void p.chat.sendMessage({ text: 'slow' });
    await s.ctl('gate', { n: 1 });
    await until('begun', () => p.text() === 'part0 ');
    await ringi.stop(p.chatAt);
    await s.ctl('gate', { n: 4 });
    await p.ready();
    equal((await s.ctl('status')), 'cancelled', 'status');
    await p.say('hello');
    equal(p.text(), 'You said hello.', 'goes on');
  },
  async 'a client that goes away stops nothing'() {
    const s = await shop(), p = await page(s);
    void p.chat.sendMessage({ text: 'slow' });
    await s.ctl('gate', { n: 1 });
    await until('begun', () => p.text() === 'part0 ');
    await p.chat.stop();
    await s.ctl('gate', { n: 4 });
    await until('the run ends', async () => (await s.ctl('status')) === 'completed');
    const q = await page(s);
    equal(q.text(), 'part0 part1 part2 part3 ', 'text');
  },
  async 'regenerate'() {
    const s = await shop(), p = await page(s);
    await p.say('hello');
    const first = p.chat.messages.at(-1).id;
    void p.chat.regenerate();
    await until('again', () => p.chat.status === 'ready' && p.chat.messages.at(-1).id !== first && p.text() === 'You said hello.');
    equal(p.chat.messages.length, 2, 'messages');
    await p.say('more');
    equal(p.text(), 'You said more.', 'text');
  },
  async 'addToolOutput: the browser runs a tool'() {
    const s = await shop();
    const p = await page(s, {
      predicate: ai.lastAssistantMessageIsCompleteWithToolCalls,
      onToolCall: (call, p) => { p.asked = call; void p.chat.addToolOutput({ tool: call.toolName, toolCallId: call.toolCallId, output: { city: 'Bern' } }); },
    });
    void p.chat.sendMessage({ text: 'where' });
    await until('done, but ' + p.errors, () => p.text() === 'I will.|Done: where responded.');
    await p.ready();
    equal(p.asked.input, { why: 'lunch' }, 'input');
    equal(p.tools()[0].output, { city: 'Bern' }, 'output');
    equal((await stored(s)).at(-1).parts.find(ai.isToolUIPart).output, { city: 'Bern' }, 'stored');
  },
  async 'typed input'() {
    const s = await shop(), p = await page(s);
    await p.say('book');
    equal(p.states(), 'input-available', 'states');
    const part = p.chat.messages.at(-1).parts.find(x => x.type === 'data-ringi-request');
    equal([part.data.here, part.data.schema.required], [true, ['code']], 'data');
    const end = ringi.follow(p.chatAt, () => p.chat.status === 'ready' && p.chat.resumeStream());
    await ringi.decide(p.chatAt, part, 'fill', { values: { code: '4711' } });
    await until('done, but ' + p.states(), () => p.states() === 'output-available');
    end();
    equal(await s.ctl('paid'), ['{"room":"12","code":"4711"}'], 'paid');
    await stored(s);
  },
  async 'siblings, failures, and what is not to be shown'() {
    const s = await shop(), p = await page(s);
    await p.say('pay and look');
    equal(p.states(), 'approval-requested output-available', 'B62 states');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await until('done', () => p.states() === 'output-available output-available');
    await p.ready();
    await p.say('pay fail');
    void p.chat.addToolApprovalResponse({ id: p.tools()[0].approval.id, approved: true });
    await until('B55 the error is shown', () => p.states() === 'output-error');
    await p.ready();
    await p.say('nothing');
    equal(p.states(), 'output-error', 'unknown tool');
    await checked(await stored(s));
    void p.chat.sendMessage({ text: 'break' });
    await p.failed();
    equal(p.errors, ['An error occurred.'], 'masked');
  },
  async 'an integer that JavaScript cannot hold is not decided here'() {
    const s = await shop(), p = await page(s);
    await p.say('pay big');
    equal(p.states(), 'input-available', 'states');
    equal(p.tools()[0].input, '{"to":"bob","amount":9007199254740993}', 'its text');
    await p.chat.sendMessage({ text: 'look' });
    await until('a new message is refused while it waits', () => p.errors.length);
  },
  async 'the page of README and docs/chat.md'() {
    const s = await shop();
    const source = readFileSync(ringiTS.replace('ringi.ts', 'smallest.tsx'), 'utf8')
      .replace(/const api = '.*'/, `const api = '${s.api}'`).replace("'./ringi'", "'./ringi.mjs'");
    writeFileSync('Chat.mjs', ts.transpileModule(source, { compilerOptions: { module: 'esnext', target: 'es2022', jsx: 'react-jsx' } }).outputText);
    const { Chat } = await import(process.cwd() + '/Chat.mjs');
    globalThis.FormData = dom.window.FormData; // the form's own
    const at = document.body.appendChild(document.createElement('div')), root = createRoot(at);
    root.render(React.createElement(Chat, { id: 'chat-1', initial: [], headers: async () => headers() }));
    const input = await until('a field', () => at.querySelector('input'));
    await sleep(300); // it looks for a stream first
    input.value = 'pay';
    input.form.requestSubmit();
    (await until('a request', () => at.querySelector('button'))).click();
    await until('an end', () => at.textContent.includes('Done: pay ok.'));
    equal(await s.ctl('paid'), ['{"to":"bob","amount":10}'], 'paid');
    root.unmount();
  },
  async 'automatic answers show no buttons'() {
    const s = await shop('policy=auto'), p = await page(s);
    await p.say('pay twice');
    equal(p.chat.status, 'ready', 'status');
    equal(p.states(), major === '6' ? 'output-available output-error' : 'output-available output-denied', 'B66 states');
    if (major !== '6') equal(p.tools().map(t => [t.approval.isAutomatic, t.approval.approved]), [[true, true], [true, false]], 'B89');
    equal(p.posts.length, 1, 'posts');
    await checked(p.chat.messages);
    await stored(s);
  },
};

let only = process.argv[5];
for (const [name, run] of Object.entries(scenarios)) {
  if (only && !name.includes(only)) continue;
  let error = '';
  try { await run(); } catch (e) { error = e.stack; }
  console.log(JSON.stringify({ name, ok: !error, error }));
}
process.exit(0);
