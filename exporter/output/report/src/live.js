// The way to the head: its API by fetch, with the token where it wants one, and its events. EventSource
// cannot send a token.
import { byId } from './dom.js';

const SILENCE_MS = 40000,
  LONGEST_WAIT_MS = 30000; // a silent head says a comment each 15 s

let token = '';
try {
  token = sessionStorage.getItem('token') || '';
} catch {
  /* storage is switched off: asked for at each visit */
}

// Paths are relative: the head may be behind a proxy, below some folder. body: of a POST.
const request = (path, body, signal) =>
  fetch(path, {
    method: body ? 'POST' : 'GET',
    body: body && JSON.stringify(body),
    cache: 'no-store',
    signal,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
  });

// The answer's JSON. An error has the server's own words.
export async function ask(path, body) {
  const answer = await request(path, body),
    said = await answer.json().catch(() => ({})),
    detail = said.detail || (said.success === false && said.message);
  if (!answer.ok || detail)
    throw new Error((detail && detail[0].msg) || detail || `the head answered ${answer.status}`);
  return said;
}

// Until somebody gives one. It stays in this tab alone.
function wantToken() {
  const form = byId('login'),
    field = byId('token');
  byId('login-said').textContent = token ? 'The head refused this token.' : '';
  form.hidden = false;
  field.focus();
  return new Promise((given) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      token = field.value;
      try {
        sessionStorage.setItem('token', token);
      } catch {
        /* as above */
      }
      field.value = '';
      form.hidden = true;
      given();
    };
  });
}

// Blocks end with an empty line; their lines are `event: name`, `data: json`, or a comment.
async function read(body, heard, on) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read();
    if (done) throw new Error('the head closed the connection');
    heard();
    let from = Math.max(0, rest.length - 1);
    rest += value;
    for (let end; (end = rest.indexOf('\n\n', from)) >= 0; from = 0) {
      const [, name, data] = /^event: (.*)\ndata: (.*)$/m.exec(rest.slice(0, end)) || [];
      rest = rest.slice(end + 2);
      if (name) on(name, JSON.parse(data));
    }
  }
}

// Never returns. on(name, data): an event; lost(ms, why): since when there is no connection.
export async function listen(on, lost) {
  for (let since = Date.now(), wait = 1000; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
    const end = new AbortController();
    const patience = () => setTimeout(() => end.abort(new Error('the head is silent')), SILENCE_MS);
    let watch = patience();
    try {
      const answer = await request('events', undefined, end.signal);
      if (answer.status === 401) {
        clearTimeout(watch);
        lost(since, 'the head wants a token');
        await wantToken();
        wait = 0;
      } else if (!answer.ok) throw new Error(`the head answered ${answer.status}`);
      else
        await read(
          answer.body,
          () => {
            since = Date.now();
            wait = 500;
            clearTimeout(watch);
            watch = patience();
          },
          on
        );
    } catch (error) {
      // a browser's words differ
      lost(since, error instanceof TypeError ? 'the head does not answer' : error.message);
    }
    clearTimeout(watch);
    end.abort();
    await new Promise((next) => {
      setTimeout(next, wait);
    });
  }
}
