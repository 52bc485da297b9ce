// Makes vectors.json with nothing but Node's crypto and JSON, so that the Go
// code is checked against bytes that it did not make:
//
//	node vectors.mjs > vectors.json
import { createHash, createHmac, hkdfSync } from 'node:crypto';

const sha = (...parts) => parts.reduce((h, p) => h.update(p), createHash('sha256')).digest();
const hmac = (key, text) => createHmac('sha256', key).update(text).digest();
const tuple = (...fields) => JSON.stringify(fields);

// Ringi's own form.
const secret = Buffer.from(Array.from({ length: 32 }, (_, i) => (i * 7 + 3) & 0xff));
const derive = (use) => Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), 'ringi-key-v1 ' + use, 32));
const kid = sha('ringi-key-id-v1 ', derive('id')).toString('hex').slice(0, 16);
const sign = (use, label, ...fields) =>
  `v1.${kid}.${hmac(derive(use), tuple(label, kid, ...fields)).toString('base64url')}`;

const store = 'store_7f "eu\\1"';
const run = 'run_ümlaut_01';
const requestDigest = sha('a request').toString('hex');
const nonce = Buffer.from(Array.from({ length: 32 }, (_, i) => 255 - i));
const input = '{\n "iban": "DE02 1203 0000 0000 2020 51",\n "cents": 123450\n}';
const reason = 'checked with the customer\nby phone';
const inputDigest = sha('["ringi-input-v1"]', nonce, input).toString('hex');
const reasonDigest = sha('["ringi-reason-v1"]', nonce, reason).toString('hex');
const head = sha('an event');
const decider = 'usr_zoë';
const authenticated = 'oidc:https://id.example/';
const micros = 1764547200123456;
const base32 = (buf) => {
  const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';
  let bits = '';
  for (const b of buf) bits += b.toString(2).padStart(8, '0');
  return bits.match(/.{5}/g).map((five) => alphabet[parseInt(five, 2)]).join('');
};
const own = {
  secret: secret.toString('base64'),
  keyID: kid,
  check: hmac(derive('check'), 'ringi-key-check-v1 ' + kid).toString('hex'),
  store, run, requestDigest, input, reason, inputDigest, reasonDigest, decider, authenticated, micros,
  nonce: nonce.toString('hex'),
  request: sign('approval', 'ringi-approval-v1', store, requestDigest),
  decision: sign('decision', 'ringi-decision-v1', store, requestDigest, 'approve', inputDigest, reasonDigest,
    decider, authenticated, String(micros)),
  denial: sign('decision', 'ringi-decision-v1', store, requestDigest, 'deny', '', '', decider, authenticated, String(micros)),
  seq: 41,
  head: head.toString('hex'),
  commit: hmac(derive('log'), tuple('ringi-commit-v1', kid, store, run, '41', head.toString('hex'))).toString('hex'),
  cursor: sign('cursor', 'ringi-cursor-v1', 'inbox', '2025-12-01', ''),
  digest: sha(tuple('example-v1', store, run)).toString('hex'),
  idempotency: 'idem_' + base32(sha(tuple('ringi-idempotency-v1', run, '3', '1', 'pay_out'), input).subarray(0, 20)),
};

// The AI SDK's form.
const canonical = (v) => {
  if (v === null || typeof v !== 'object') return JSON.stringify(v);
  if (Array.isArray(v)) return '[' + v.map(canonical).join(',') + ']';
  return '{' + Object.keys(v).sort().map((k) => JSON.stringify(k) + ':' + canonical(v[k])).join(',') + '}';
};
const aisdkSecret = 'not base64, a comma and ümlauts';
const rows = [
  ['refund', 'refund', '{"order":"o-91","cents":1999,"notify":true,"note":null}'],
  ['refund in another order', 'refund', ' {"notify" : true,\t"note":null,\r\n"cents":1999 ,"order":"o-91"}\n'],
  ['order inside arrays', 'refund', '[{"b":[{"y":1,"x":2}],"a":{"d":{},"c":[]}}]'],
  ['number spellings', 'move', '[10,10.0,1e1,1E+1,100e-1,0.1e2]'],
  ['zeroes', 'move', '[0,-0,0.0,-0.0e5,1e-400,-1e-400]'],
  ['overflow', 'move', '[1e308,1e309,-1e309,1e999999]'],
  ['edges of plain notation', 'move', '[1e20,1e21,999999999999999900000,1e-6,1e-7,0.0000012,0.00000012,-1e21,-1e-7]'],
  ['doubles', 'move', '[5e-324,1.7976931348623157e308,2.2250738585072014e-308,0.30000000000000004,1.7976931348623159e308,4.35,123456789.123456789]'],
  ['twin above 2^53', 'move', '{"n":9007199254740993}'],
  ['twin at 2^53', 'move', '{"n":9007199254740992}'],
  ['escapes', 'write', '"\\u0000\\u0008\\u0009\\u000a\\u000b\\u000c\\u000d\\u001f\\u0022\\u005c\\/\\u007f\\u0080"'],
  ['not escaped', 'write', '"<script>&amp;\\u2028\\u2029 caf\u00e9 \u{1f980}"'],
  ['pairs and halves', 'write', '["\\ud83e\\udd80","\\udd80\\ud83e","\\ud83e","\\ud83ex","\\ud83e\\ud83e\\udd80","\\uD83E\\uDD80"]'],
  ['keys by code unit', 'write', '{"\\uf000":1,"\u{1f980}":2,"\\ud83e":3,"\\udfff":4,"z":5,"Z":6,"":7,"\u00e9":8,"e\\u0301":9}'],
  ['doubled keys', 'write', '{"k":1,"\\u006b":{"k":2,"k":[3]},"j":0}'],
  ['names of the prototype', 'write', '{"__proto__":{"a":1},"constructor":2,"toString":null}'],
  ['keys that look like numbers', 'write', '{"2":1,"10":2,"1":3,"01":4,"-1":5}'],
  ['null', 'ping', 'null'], ['true', 'ping', 'true'], ['a string', 'ping', '"hi"'], ['a number', 'ping', '-1.50'],
  ['empty object', 'ping', '{}'], ['empty array', 'ping', ' [ ] '],
  ['line end in the name', 'pay\nout', '{"cents":1}'],
  ['controls in the name', 'a\r\t\0"\\\u007f\u0085\u2028', '{"cents":1}'],
].map(([name, toolName, text]) => {
  const id = { approvalId: 'aitxt-' + name.length, toolCallId: 'tc_' + name };
  const canon = canonical(JSON.parse(text));
  const digest = sha(canon).toString('base64url');
  const payload = tuple('ai-sdk-tool-approval-v1', id.approvalId, id.toolCallId, toolName, digest);
  return {
    name, ...id, toolName, text, canonical: canon, digest, payload,
    signature: hmac(aisdkSecret, payload).toString('base64url'),
    legacy: hmac(aisdkSecret, [id.approvalId, id.toolCallId, toolName, digest].join('\n')).toString('base64url'),
  };
});

// Doubles of every size: the bits, and how JavaScript writes them.
const doubles = [];
let state = 0x9e3779b97f4a7c15n;
const view = new DataView(new ArrayBuffer(8));
while (doubles.length < 600) {
  state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
  let bits = state;
  if (doubles.length % 2) { // half of them between 2^-30 and 2^80, where notations change
    bits = (bits & 0x800fffffffffffffn) | ((993n + (state >> 40n) % 110n) << 52n);
  }
  view.setBigUint64(0, bits);
  doubles.push([bits.toString(16).padStart(16, '0'), JSON.stringify(view.getFloat64(0))]);
}

const lines = (list) => '[\n' + list.map((x) => '  ' + JSON.stringify(x)).join(',\n') + '\n ]';
console.log(`{\n "own": ${JSON.stringify(own, null, 2).replace(/\n/g, '\n ')},\n` +
  ` "aisdkSecret": ${JSON.stringify(aisdkSecret)},\n "aisdk": ${lines(rows)},\n "doubles": ${lines(doubles)}\n}`);
