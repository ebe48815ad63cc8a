// Small assertions that count, and a page watched for everything it must not do.
import { chromium } from 'playwright-core';

let passed = 0,
  failed = 0;
export function ok(condition, what) {
  if (condition) passed++;
  else {
    failed++;
    console.log(`FAIL: ${what}`);
  }
}
export const same = (got, want, what) =>
  ok(
    JSON.stringify(got) === JSON.stringify(want),
    `${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`
  );
export function finish() {
  console.log(`${passed} checks passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}

export const launch = () =>
  chromium.launch({
    executablePath: process.env.NI_CHROMIUM || '/usr/bin/chromium',
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });

// A page whose console errors, exceptions, dialogs and requests are collected; `complaints` must stay empty.
export async function watched(browser, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    acceptDownloads: true,
    ...options,
  });
  const page = await context.newPage();
  page.complaints = [];
  // The readback warning is about pixels(), below.
  page.on('console', (m) => {
    if (/^(error|warning)$/.test(m.type()) && !m.text().includes('Multiple readback'))
      page.complaints.push(`console: ${m.text()}`);
  });
  page.on('pageerror', (e) => page.complaints.push(`exception: ${e.message}`));
  page.on('dialog', (d) => {
    if (page.answer) page.answer(d);
    else {
      page.complaints.push(`dialog: ${d.message()}`);
      d.dismiss();
    }
  });
  page.on('request', (r) => {
    if (!/^(file|data|blob):/.test(r.url())) page.complaints.push(`request: ${r.url().slice(0, 120)}`);
  });
  return page;
}

export const CHARTS = ['c-time', 'c-size', 'c-heat', 'c-run', 'c-hist', 'c-points'];

export async function showAll(page) {
  for (const id of CHARTS) {
    await page.locator(`#${id}`).scrollIntoViewIfNeeded();
    await page.waitForFunction(
      (i) =>
        document.getElementById(i).dataset.drawn === '1' || document.getElementById(i).querySelector('.none'),
      id
    );
  }
}

// How many pixels of the chart have each of some colours, and how many distinct colours there are.
export const pixels = (page, id) =>
  page.evaluate((i) => {
    const canvas = document.querySelector(`#${i} canvas`);
    const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Map();
    for (let p = 0; p < data.length; p += 4) {
      if (data[p + 3] < 255) continue;
      const key = `#${[data[p], data[p + 1], data[p + 2]].map((v) => v.toString(16).padStart(2, '0')).join('')}`;
      colors.set(key, (colors.get(key) || 0) + 1);
    }
    return {
      width,
      height,
      colors: Object.fromEntries([...colors].sort((a, b) => b[1] - a[1]).slice(0, 400)),
      distinct: colors.size,
    };
  }, id);

// RFC 4180.
export function parseCsv(text) {
  const rows = [];
  let row = [],
    field = '',
    quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c === '"' && text[i + 1] === '"') {
        field += '"';
        i++;
      } else if (c === '"') quoted = false;
      else field += c;
    } else if (c === '"') quoted = true;
    else if (c === ',') {
      row.push(field);
      field = '';
    } else if (c === '\n') {
      row.push(field);
      rows.push(row);
      row = [];
      field = '';
    } else field += c;
  }
  return rows;
}
