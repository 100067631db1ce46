// Two sites that use what pages use: http://site.test and http://cdn.test. Every page writes what it found into #out
// and says by data-done on its root element that it is through.
//
//   node site.mjs      serves them on a free port of loopback, prints {"port", "urls", "pages"} and stays

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

const FONT = '/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf';
const SITE = 'http://site.test';
const CDN = 'http://cdn.test';

const page = (title, body, head = '') => ({
  type: 'text/html; charset=utf-8',
  body: `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<link rel="stylesheet" href="/css/main.css">${head}
<script>
function say(name, value) {
  document.getElementById('out').textContent += name + ': ' + (typeof value === 'string' ? value : JSON.stringify(value)) + '\\n';
}
function done() { document.documentElement.dataset.done = 'yes'; }
window.onerror = function (message, source, line) { say('error', message + ' line ' + line); done(); };
window.addEventListener('unhandledrejection', function (event) { say('rejected', String(event.reason)); done(); });
</script></head>
<body><h1>${title}</h1><pre id="out"></pre>
${body}
</body></html>
`,
});
const script = (body) => ({ type: 'text/javascript; charset=utf-8', body });
const css = (body) => ({ type: 'text/css', body });
const json = (value) => ({ type: 'application/json', body: JSON.stringify(value) });
const svg = (colour, size = 40) => ({
  type: 'image/svg+xml',
  body: `<svg xmlns="http://www.w3.org/2000/svg" width="${size}" height="${size}"><rect width="${size}" height="${size}" fill="${colour}"/></svg>`,
});

/** A tone of a minute as WAV: long enough that a player asks for parts of it. */
function tone() {
  const rate = 16000;
  const samples = rate * 60;
  const bytes = Buffer.alloc(44 + samples * 2);
  bytes.write('RIFF', 0);
  bytes.writeUInt32LE(36 + samples * 2, 4);
  bytes.write('WAVEfmt ', 8);
  bytes.writeUInt32LE(16, 16);
  bytes.writeUInt16LE(1, 20);
  bytes.writeUInt16LE(1, 22);
  bytes.writeUInt32LE(rate, 24);
  bytes.writeUInt32LE(rate * 2, 28);
  bytes.writeUInt16LE(2, 32);
  bytes.writeUInt16LE(16, 34);
  bytes.write('data', 36);
  bytes.writeUInt32LE(samples * 2, 40);
  for (let at = 0; at < samples; at++) bytes.writeInt16LE(Math.round(8000 * Math.sin(at / 10)), 44 + at * 2);
  return bytes;
}

export const answers = {
  [`${SITE}/css/main.css`]: css(`@import "more.css"; @import url(${CDN}/css/far.css);
@font-face { font-family: Carried; src: url("/font.ttf"); }
body { font-family: Carried, serif; margin: 8px; background: #fff; }
#backed { width: 60px; height: 30px; background: url(../img/green.svg) no-repeat; }`),
  [`${SITE}/css/more.css`]: css('h1 { color: rgb(0, 0, 128); font-size: 20px; }'),
  [`${CDN}/css/far.css`]: css('pre { border-left: 4px solid rgb(200, 0, 0); padding-left: 6px; }'),
  [`${SITE}/img/green.svg`]: svg('green'),
  [`${SITE}/img/one.svg`]: svg('orange'),
  [`${SITE}/img/two.svg`]: svg('purple'),
  [`${CDN}/img/far.svg`]: svg('teal'),

  [`${SITE}/scripts.html`]: page('Classic scripts', `
<script>
let first = 1; const second = 'two'; class Third { name() { return 'three'; } }
const { fourth, five: fifth = 5 } = { fourth: 4 };
var sixth = 6; function seventh() { return this === window; }
async function eighth() { return 8; }
</script>
<script src="js/uses.js"></script>
<script src="/js/rooted.js"></script>
<script>document.write('<p id="written">written while loading</p>');</script>
<button id="button" onclick="say('handler', location.pathname + ' ' + (this.id) + ' ' + document.title)">button</button>
<a id="js" href="javascript:say('address', window.location.hostname); done()">javascript:</a>
<script>
document.getElementById('button').click();
document.getElementById('js').click();
</script>`),
  [`${SITE}/js/uses.js`]: script(`say('declared', [first, second, new Third().name(), fourth, fifth, sixth, seventh()]);
first = 11; say('assigned', first);
eighth().then(function (value) { say('async', value); });
say('location', location.href + ' | ' + window.location.host + ' | ' + document.location.protocol);
say('url', document.URL); say('domain', document.domain); say('base', document.baseURI);
say('top', [top === window, parent === self, window.frames === window]);
say('eval', eval('1 + first') + ' ' + (0, eval)('typeof first') + ' ' + eval('location.pathname'));
(function (root) { say('root', root === window && root.document === document); })(this);
document.cookie = 'kept=yes; path=/'; say('cookie', document.cookie);
localStorage.setItem('a', 'b'); say('storage', localStorage.getItem('a'));
var link = document.createElement('a'); link.href = '/deep/../link?x#y'; say('link', link.href + ' ' + link.pathname);`),
  [`${SITE}/js/rooted.js`]: script(`var self = this; say('self', self === window);
say('scripts', document.scripts.length); say('current', document.currentScript.getAttribute('src'));`),

  [`${SITE}/modules.html`]: page('Modules', `
<script type="module">
import { answer, here } from './mod/a.js';
import { mapped } from 'bare';
import { inner } from 'lib/inner.js';
import { far } from '${CDN}/mod/far.js';
say('static', [answer, mapped, inner, far]); say('meta', here);
const dynamic = await import('./mod/d.js'); say('dynamic', dynamic.default);
const bare = await import('bare'); say('dynamic bare', bare.mapped);
say('location', window.location.href + ' ' + location.pathname + ' ' + (top === window));
say('this', typeof this);
done();
</script>`, `
<script type="importmap">{"imports": {"bare": "/mod/mapped.js", "lib/": "./mod/lib/"}}</script>
<link rel="modulepreload" href="/mod/a.js">`),
  [`${SITE}/mod/a.js`]: script(`import { base } from './b.js'; export * from './b.js';
export const answer = base + 2; export const here = import.meta.url;`),
  [`${SITE}/mod/b.js`]: script('export const base = 40; export default class { static location = document.location.hostname; }'),
  [`${SITE}/mod/d.js`]: script(`const self = 'own'; const { e } = await import('./e.js'); export default 'd ' + self + ' ' + e;`),
  [`${SITE}/mod/e.js`]: script('export const e = window.document.title;'),
  [`${SITE}/mod/mapped.js`]: script("export const mapped = 'mapped';"),
  [`${SITE}/mod/lib/inner.js`]: script("export const inner = 'inner';"),
  [`${CDN}/mod/far.js`]: script("import { near } from './near.js'; export const far = 'far ' + near;"),
  [`${CDN}/mod/near.js`]: script("export const near = new URL(import.meta.url).host;"),

  [`${SITE}/fetch.html`]: page('fetch and XMLHttpRequest', `
<script>
(async function () {
  const own = await fetch('/data/own.json'); say('fetch', await own.json()); say('fetched', own.url);
  const far = await fetch('${CDN}/data/far.json'); say('far', await far.json());
  const part = await fetch(new Request('data/part.html')); const html = await part.text(); say('text', html);
  document.getElementById('place').innerHTML = html;
  const xhr = new XMLHttpRequest(); xhr.open('GET', 'data/own.json');
  xhr.onload = function () {
    say('xhr', xhr.responseText + ' ' + xhr.responseURL);
    const gone = new XMLHttpRequest(); gone.open('GET', 'http://nowhere.test/live');
    gone.onloadend = function () { say('gone', gone.status < 200 || gone.status > 299); done(); };
    gone.send();
  };
  xhr.send();
})();
</script>
<div id="place"></div>`),
  [`${SITE}/data/own.json`]: json({ own: [1, 2, 3], url: `${SITE}/x` }),
  [`${CDN}/data/far.json`]: json({ far: true }),
  [`${SITE}/data/part.html`]: { type: 'text/html', body: '<p><img src="/img/one.svg" alt="one"> <a href="/scripts.html">part</a></p>' },

  [`${SITE}/frames.html`]: page('Frames', `
<iframe id="own" src="inner.html" width="200" height="60"></iframe>
<iframe id="far" src="${CDN}/far.html" width="200" height="60"></iframe>
<iframe id="doc" srcdoc="<p>inside</p><script>parent.postMessage({doc: document.querySelector('p').textContent}, '*')</script>" width="200" height="60"></iframe>
<script>
const heard = new Map();
window.addEventListener('message', function (event) {
  const kind = Object.keys(event.data)[0];
  heard.set(kind, JSON.stringify(event.data) + (kind === 'doc' ? '' : ' ' + event.origin));
  if (heard.size === 3) {
    for (const key of [...heard.keys()].sort()) say('heard ' + key, heard.get(key));
    const own = document.getElementById('own');
    say('inside', own.contentDocument.title + ' ' + own.contentWindow.location.pathname);
    done();
  }
});
</script>`),
  [`${SITE}/inner.html`]: {
    type: 'text/html',
    body: `<title>Inner</title><p>inner</p><script>parent.postMessage({own: location.pathname, top: top === parent}, '${SITE}')</script>`,
  },
  [`${CDN}/far.html`]: {
    type: 'text/html',
    body: `<title>Far</title><p>far</p><img src="/img/far.svg"><script>
parent.postMessage({far: location.hostname, framed: top !== self}, '*')</script>`,
  },

  [`${SITE}/images.html`]: page('Images, styles, fonts', `
<img id="set" srcset="/img/one.svg 1x, /img/two.svg 2x" src="/img/two.svg" alt="set">
<picture><source srcset="${CDN}/img/far.svg" type="image/svg+xml"><img id="picked" src="/img/one.svg" alt="picked"></picture>
<div id="backed"></div><p style="background: url('/img/two.svg') no-repeat; height: 40px">styled</p>
<svg width="50" height="50"><image href="/img/green.svg" width="50" height="50"/></svg>
<script>
window.addEventListener('load', async function () {
  await document.fonts.load('16px Carried'); await document.fonts.ready;
  say('fonts', [...document.fonts].map((font) => font.family + ' ' + font.status));
  say('colour', getComputedStyle(document.querySelector('h1')).color);
  say('border', getComputedStyle(document.querySelector('pre')).borderLeftColor);
  for (const id of ['set', 'picked']) {
    const image = document.getElementById(id);
    say(id, image.src + ' ' + image.naturalWidth + ' ' + image.getAttribute('src'));
  }
  const made = new Image(); made.onload = function () { say('made', made.src); done(); };
  made.src = '/img/green.svg'; document.body.append(made);
});
</script>`),
  [`${SITE}/font.ttf`]: { type: 'font/ttf', body: () => readFileSync(FONT) },

  [`${SITE}/media.html`]: page('Media in parts', `
<video id="player" src="/media/tone.wav" preload="auto" width="200" height="40" muted></video>
<script>
const player = document.getElementById('player');
player.addEventListener('loadedmetadata', function () {
  say('length', Math.round(player.duration)); player.currentTime = 55;
});
player.addEventListener('seeked', function () { say('at', Math.round(player.currentTime)); done(); }, { once: true });
player.addEventListener('error', function () { say('media error', player.error.message); done(); });
</script>`),
  [`${SITE}/media/tone.wav`]: { type: 'audio/wav', body: tone },

  [`${SITE}/workers.html`]: page('Workers', `
<script>
function ask(name, worker) {
  return new Promise(function (resolve) {
    worker.onmessage = function (event) { say(name, event.data); resolve(); };
    worker.onerror = function (event) { say(name, 'failed: ' + event.message); resolve(); };
    worker.postMessage('go');
  });
}
(async function () {
  await ask('classic', new Worker('work/classic.js'));
  await ask('module', new Worker('/work/module.js', { type: 'module' }));
  const code = "onmessage = function (event) { postMessage('blob heard ' + event.data); };";
  await ask('blob', new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' }))));
  done();
})();
</script>`),
  [`${SITE}/work/classic.js`]: script(`importScripts('/work/part.js');
onmessage = async function (event) {
  const data = await (await fetch('/data/own.json')).json();
  postMessage([event.data, part, data.own.length, location.href]);
};`),
  [`${SITE}/work/part.js`]: script("var part = 'part';"),
  [`${SITE}/work/module.js`]: script(`import { base } from '../mod/b.worker.js';
onmessage = async (event) => postMessage([event.data, base, (await (await fetch('/data/own.json')).json()).own]);`),
  [`${SITE}/mod/b.worker.js`]: script('export const base = 41;'),

  [`${SITE}/spa/`]: page('One page', `
<nav><a href="/spa/one">one</a> <a href="/spa/two">two</a></nav><main id="view">start</main>
<script>
function show() {
  document.getElementById('view').innerHTML = '<h2>' + location.pathname + '</h2><img src="/img/one.svg">';
  say('shown', location.pathname + location.search + ' ' + JSON.stringify(history.state));
}
document.querySelector('nav').addEventListener('click', function (event) {
  event.preventDefault();
  history.pushState({ to: event.target.textContent }, '', event.target.href); show();
});
window.addEventListener('popstate', function () { show(); location.hash = 'end'; });
window.addEventListener('hashchange', function () { say('hash', location.href); done(); });
document.querySelectorAll('nav a')[0].click();
document.querySelectorAll('nav a')[1].click();
history.replaceState({ to: 'replaced' }, '', '?q=1'); show();
history.back();
</script>`),

  [`${SITE}/leaks.html`]: page('Ways out', `
<img src="http://nowhere.test/static.png" alt="">
<link rel="preconnect" href="http://nowhere.test"><link rel="dns-prefetch" href="//nowhere.test">
<script>
(async function () {
  const out = [];
  const image = new Image(); image.src = 'http://nowhere.test/made.png'; document.body.append(image);
  await new Promise(function (next) { image.onerror = image.onload = next; });
  try { out.push((await fetch('http://nowhere.test/fetched')).ok); } catch (error) { out.push(false); }
  const frame = document.createElement('iframe'); frame.src = 'http://nowhere.test/frame'; document.body.append(frame);
  await new Promise(function (next) { frame.onload = frame.onerror = next; });
  navigator.sendBeacon('http://nowhere.test/beacon', 'x');
  // As a hostile page would: a fresh realm without wombat, and an element that was never looked at.
  const realm = document.createElement('iframe'); document.body.append(realm);
  try { out.push((await realm.contentWindow.fetch('http://nowhere.test/realm')).ok); } catch (error) { out.push(false); }
  const style = document.createElement('style');
  style.textContent = 'body { list-style-image: ur\\\\6c(http://nowhere.test/escaped.png); cursor: url(http://nowhere.test/c.png), auto }';
  document.head.append(style);
  say('answered', out);
  done();
})();
</script>`),
};

/** Pages to look at; `same` where what they show must not differ from the live page. */
export const pages = [
  { url: `${SITE}/scripts.html`, same: true },
  { url: `${SITE}/modules.html`, same: true },
  { url: `${SITE}/fetch.html`, same: true },
  { url: `${SITE}/frames.html`, same: true },
  { url: `${SITE}/images.html`, same: true },
  { url: `${SITE}/media.html`, same: true, partial: `${SITE}/media/tone.wav` },
  { url: `${SITE}/workers.html`, same: true },
  { url: `${SITE}/spa/`, same: true },
  { url: `${SITE}/leaks.html`, same: false },
];

export function serve() {
  const server = createServer((request, response) => {
    const answer = answers[`http://${request.headers.host}${request.url}`];
    if (!answer) {
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('not here\n');
      return;
    }
    const body = Buffer.from(typeof answer.body === 'function' ? answer.body() : answer.body);
    const headers = { 'Content-Type': answer.type, 'Access-Control-Allow-Origin': '*', 'Accept-Ranges': 'bytes' };
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '');
    if (range) {
      const from = Number(range[1]);
      const to = range[2] ? Math.min(Number(range[2]), body.length - 1) : body.length - 1;
      headers['Content-Range'] = `bytes ${from}-${to}/${body.length}`;
      response.writeHead(206, headers).end(body.subarray(from, to + 1));
      return;
    }
    response.writeHead(200, { ...headers, 'Content-Length': body.length }).end(body);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

if (process.argv[1] === new URL(import.meta.url).pathname) {
  const server = await serve();
  console.log(JSON.stringify({ port: server.address().port, urls: Object.keys(answers) }));
}
