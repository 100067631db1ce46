// Looks at the pages of site.mjs with Chromium and writes down what is there.
//
//   node browse.mjs live PORT FOLDER              the pages as they are served; screenshots and contents into FOLDER
//   node browse.mjs replay http://HOST/COLL FOLDER   the same pages from the archive, compared with FOLDER
//   node browse.mjs proxy HOST:PORT FOLDER        the same with the archive as the browser's proxy
//
// Prints the share of pixels of each page that differ visibly. Ends with 1 and a list when something differs or a
// request left loopback; both pictures of every page stay in FOLDER.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { SHARE_MAX, VISIBLE, differing, percent } from './pictures.mjs';
import { pages } from './site.mjs';

const [mode, where, folder] = process.argv.slice(2);
const LIVE = mode === 'live';
const PROXY = mode === 'proxy';
// The frame of the replayed page is as large as the live page's window.
const VIEW = { width: 800, height: 600 };
// As long as the tests in Rust wait.
const LONGEST_MS = 150_000;

const executablePath = process.env.GRANGE_TEST_CHROMIUM ?? '/usr/bin/chromium';
// Through the proxy the browser looks up no name at all.
const rules = LIVE ? `MAP *.test 127.0.0.1:${where}` : 'MAP * ~NOTFOUND, EXCLUDE 127.0.0.1';
const browser = await chromium.launch({
  executablePath,
  timeout: LONGEST_MS,
  args: ['--no-sandbox', `--host-resolver-rules=${rules}`, '--font-render-hinting=none', '--disable-gpu'],
  proxy: PROXY ? { server: `http://${where}` } : undefined,
});
const faults = [];

const framed = mode === 'replay';
for (const { url, same, partial } of pages) {
  const name = new URL(url).pathname.replaceAll('/', '_');
  const viewport = { ...VIEW, height: VIEW.height + (framed ? 200 : 0) };
  const context = await browser.newContext({ viewport, deviceScaleFactor: 1 });
  context.setDefaultTimeout(LONGEST_MS);
  context.setDefaultNavigationTimeout(LONGEST_MS);
  const page = await context.newPage();
  const asked = [];
  const parts = [];
  const logged = [];
  context.on('request', (request) => asked.push(request.url()));
  // Stopped by the policy before anything was sent.
  context.on('requestfailed', (request) => {
    if (request.failure().errorText === 'csp') asked.splice(asked.indexOf(request.url()), 1);
  });
  context.on('response', (response) => response.status() === 206 && parts.push(response.url()));
  page.on('console', (message) => logged.push(message.text()));
  page.on('pageerror', (error) => logged.push(String(error)));
  try {
    const found = await look(page, url);
    if (LIVE) {
      writeFileSync(join(folder, `${name}.json`), JSON.stringify(found.contents));
      writeFileSync(join(folder, `${name}.png`), found.picture);
    } else {
      // First of all, so that it is there whatever the comparison finds.
      writeFileSync(join(folder, `${name}.${mode}.png`), found.picture);
      if (same) await compare(page, name, found);
      // Chromium could not have found another host, but even asking is a leak. The proxy is asked for all of them.
      const outside = (one) => framed && /^(https?|wss?):/.test(one) && !one.startsWith(`${new URL(where).origin}/`);
      for (const leak of asked.filter(outside)) faults.push(`${name}: asked for ${leak}`);
      if (partial && !parts.some((one) => one.endsWith(partial))) faults.push(`${name}: ${partial} was not asked for in parts`);
    }
  } catch (error) {
    faults.push(`${name}: ${error}`);
  }
  if (faults.length > 0 && logged.length > 0) faults.push(`${name}: console: ${logged.slice(0, 10).join(' | ')}`);
  await context.close();
}
await browser.close();
for (const fault of faults) console.log(fault);
process.exit(faults.length > 0 ? 1 : 0);

async function look(page, url) {
  let frame = page.mainFrame();
  let clip;
  if (!framed) {
    await page.goto(url);
  } else {
    await page.goto(`${where}/${url}`);
    const holder = page.locator('iframe[name=grange_replay]');
    await holder.evaluate((element, view) => {
      Object.assign(element.style, { width: `${view.width}px`, height: `${view.height}px`, border: '0', flex: 'none' });
    }, VIEW);
    frame = await (await holder.elementHandle()).contentFrame();
    const box = await holder.boundingBox();
    clip = { x: box.x, y: box.y, ...VIEW };
  }
  await frame.waitForSelector('html[data-done=yes]', { state: 'attached', timeout: LONGEST_MS });
  const contents = await frame.evaluate(contentsOf);
  return { contents, picture: await page.screenshot({ clip }) };
}

/** Runs in the page: its text and its elements, without what replay must add or change. */
function contentsOf() {
  const plain = (value) => value.replace(/(http:\/\/127\.0\.0\.1:\d+)?\/[a-z]+\/\d{14}[a-z]*_\//g, '').replaceAll('http://site.test', '');
  const get = (element, name) => {
    // The attribute as it is in the document, beneath wombat.
    const own = element.attributes.getNamedItem(name);
    return own ? own.value : null;
  };
  const tree = (element) => {
    const attributes = {};
    for (const { name } of [...element.attributes]) {
      if (name === '__wb_orig_src' || name.startsWith('on')) continue;
      const value = name === 'src' && get(element, '__wb_orig_src') !== null ? get(element, '__wb_orig_src') : get(element, name);
      if (name === 'srcdoc' || value.startsWith('javascript:')) continue;
      attributes[name.replace(/^_/, '')] = plain(value);
    }
    const children = [];
    if (element.tagName !== 'SCRIPT') {
      for (const child of element.childNodes) {
        if (child.nodeType === Node.ELEMENT_NODE) children.push(tree(child));
        else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) children.push(plain(child.data.trim()));
      }
    }
    return [element.tagName, attributes, children];
  };
  return { out: document.getElementById('out').textContent, title: document.title, tree: tree(document.documentElement) };
}

async function compare(page, name, found) {
  const live = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
  for (const part of ['title', 'out', 'tree']) {
    const [one, other] = [live[part], found.contents[part]].map((value) => JSON.stringify(value));
    if (one === other) continue;
    let at = 0;
    while (one[at] === other[at]) at++;
    const around = (text) => text.slice(Math.max(0, at - 60), at + 160);
    faults.push(`${name}: ${part} differs:\n  live     …${around(one)}\n  replayed …${around(other)}`);
  }
  const pictures = [readFileSync(join(folder, `${name}.png`)), found.picture];
  const blank = await page.context().newPage();
  const [one, other] = pictures.map((picture) => picture.toString('base64'));
  const share = await blank.evaluate(shareOf, { one, other, judge: differing.toString(), visible: VISIBLE });
  console.log(`${name}: ${percent(share)} of the pixels differ by more than ${VISIBLE} of 255`);
  if (share > SHARE_MAX) {
    faults.push(`${name}: ${percent(share)} of the pictures differ, at most ${percent(SHARE_MAX)} may: see ${name}.png and ${name}.${mode}.png in ${folder}`);
  }
}

/** Runs in a blank page, which decodes the PNGs: moving all pixels out of it would take minutes. */
async function shareOf({ one, other, judge, visible }) {
  const pixels = async (base64) => {
    const picture = await createImageBitmap(await (await fetch(`data:image/png;base64,${base64}`)).blob());
    const canvas = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
    canvas.drawImage(picture, 0, 0);
    return canvas.getImageData(0, 0, picture.width, picture.height);
  };
  return new Function(`return ${judge}`)()(await pixels(one), await pixels(other), visible);
}
