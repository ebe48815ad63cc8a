// Makes the pieces of the pages: what stands before the data, and what stands behind in all.
// Style and script are inlined, and the page's Content-Security-Policy names exactly their hashes.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const out = process.argv[2];
const common = { bundle: true, minify: true, write: false, charset: 'utf8', legalComments: 'none', logLevel: 'warning' };
const script = await build({
  ...common,
  entryPoints: ['src/main.js'],
  format: 'iife',
  target: ['es2020'],
  // ECharts carries development checks behind this name.
  define: { 'process.env.NODE_ENV': '"production"', __DEV__: 'false' },
});
const style = await build({ ...common, entryPoints: ['src/style.css'] });

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')).version;
const licences =
  `/* Contains Apache ECharts ${version('echarts')} (Apache-2.0, the Apache Software Foundation), ` +
  `zrender ${version('zrender')} (BSD-3-Clause, Baidu Inc.), tslib ${version('tslib')} (0BSD, Microsoft). */\n`;
// "</script" and "<!--" would end or upset the element that holds the text.
const js = licences + script.outputFiles[0].text.replace(/<\/(script)/gi, '<\\/$1').replace(/<!--/g, '<\\!--').trim();
const css = style.outputFiles[0].text.trim();
if (/<\/style/i.test(css)) throw new Error('the style ends its own element');

const hash = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
const policy = (name) => [
  "default-src 'none'",
  `script-src ${hash(js)}`,
  `style-src ${hash(css)}`,
  'img-src data: blob:', // the charts' own pictures
  "base-uri 'none'",
  "form-action 'none'",
  ...(name === 'head' ? ["connect-src 'self'"] : []), // the only page that asks for its data
].join('; ');

// Pages of one shape and with one script, which chooses by the name of the body; what is their own are the sections.
const write = (name, text) => {
  writeFileSync(join(out, `${name}.tmp`), text);
  renameSync(join(out, `${name}.tmp`), join(out, name));
};
let tail;
for (const name of ['counters', 'diff', 'head', 'report']) {
  const parts = { POLICY: policy(name), STYLE: css, NAME: name, SECTIONS: `\n${readFileSync(`src/${name}.html`, 'utf8')}` };
  const page = readFileSync('src/page.html', 'utf8').replace(/@(POLICY|STYLE|NAME|SECTIONS)@/g, (_, part) => parts[part]);
  const [head, rest] = page.split('@DATA@');
  tail = rest;
  write(`${name}_assets.head`, head);
}
// The tail is what make looks at: last.
write('report_assets.tail', tail.split('@SCRIPT@').join(js));
