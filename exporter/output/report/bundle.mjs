// Makes the pieces of the pages: what stands before the data, and what stands behind in all.
// Style and script are inlined, and the page's Content-Security-Policy names exactly their hashes.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const out = process.argv[2];
const common = {
  bundle: true,
  metafile: true,
  minify: true,
  write: false,
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'warning',
};
const script = await build({
  ...common,
  entryPoints: ['src/main.js'],
  format: 'iife',
  target: ['es2020'],
  // ECharts carries development checks behind this name.
  define: { 'process.env.NODE_ENV': '"production"', __DEV__: 'false' },
});
const style = await build({ ...common, entryPoints: ['src/style.css'] });

// What of others is in the script, as the bundler saw it, and the texts that come with each: licence, notice,
// licences of its parts. They go into out/licences, from where they are installed and packaged; bundled.json
// says which packages these are.
const inside = new Set(
  Object.keys(script.metafile.inputs).flatMap(
    (path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []
  )
);
rmSync(join(out, 'licences'), { recursive: true, force: true });
rmSync(join(out, 'bundled.json'), { force: true });
mkdirSync(join(out, 'licences'));
const bundled = [...inside].sort().map((name) => {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
  const parts = existsSync(`${folder}/licenses`)
    ? readdirSync(`${folder}/licenses`).map((f) => `licenses/${f}`)
    : [];
  const texts = [...readdirSync(folder).filter((f) => /^(LICENSE|NOTICE)([.]|$)/i.test(f)), ...parts];
  if (!texts.some((f) => /^LICENSE/i.test(f))) throw new Error(`${name} comes without its licence`);
  for (const f of texts) {
    const rest = f
      .replace(/^licenses[/]LICENSE-|^LICENSE[^/]*/i, '')
      .replace(/[/]/g, '-')
      .replace(/[.]txt$/, '');
    writeFileSync(
      join(out, 'licences', [name.replace('/', '-'), rest].filter(Boolean).join('-')),
      readFileSync(`${folder}/${f}`)
    );
  }
  return { name, version, license };
});
writeFileSync(join(out, 'bundled.json'), `${JSON.stringify(bundled, null, 1)}\n`);
// Who hands on a page hands on what is in it: the text that the BSD licence wants to be beside it, and
// ECharts' notice.
const legalText = (file) =>
  readFileSync(`node_modules/${file}`, 'utf8')
    .trim()
    .replace(/[*][/]/g, '* /');
const licences = `/* Contains ${bundled.map((p) => `${p.name} ${p.version} (${p.license})`).join(', ')}.\n
${legalText('echarts/NOTICE')}\n\nzrender: ${legalText('zrender/LICENSE')} */\n`;
// "</script" and "<!--" would end or upset the element that holds the text.
const js =
  licences +
  script.outputFiles[0].text
    .replace(/<\/(script)/gi, '<\\/$1')
    .replace(/<!--/g, '<\\!--')
    .trim();
const css = style.outputFiles[0].text.trim();
if (/<\/style/i.test(css)) throw new Error('the style ends its own element');

const hash = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;
const policy = (name) =>
  [
    "default-src 'none'",
    `script-src ${hash(js)}`,
    `style-src ${hash(css)}`,
    'img-src data: blob:', // the charts' own pictures
    "base-uri 'none'",
    "form-action 'none'",
    ...(name === 'head' ? ["connect-src 'self'"] : []), // the only page that asks for its data
  ].join('; ');

// Pages of one shape and with one script, which chooses by the name of the body; what is their own are the
// sections.
const write = (name, text) => {
  writeFileSync(join(out, `${name}.tmp`), text);
  renameSync(join(out, `${name}.tmp`), join(out, name));
};
let tail;
for (const name of ['counters', 'diff', 'head', 'report']) {
  const parts = {
    POLICY: policy(name),
    STYLE: css,
    NAME: name,
    SECTIONS: `\n${readFileSync(`src/${name}.html`, 'utf8')}`,
  };
  const page = readFileSync('src/page.html', 'utf8').replace(
    /@(POLICY|STYLE|NAME|SECTIONS)@/g,
    (_, part) => parts[part]
  );
  const [head, rest] = page.split('@DATA@');
  tail = rest;
  write(`${name}_assets.head`, head);
}
// The tail is what make looks at: last.
write('report_assets.tail', tail.split('@SCRIPT@').join(js));
