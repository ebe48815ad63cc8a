// Whose logs these are, where the time went, and what the figures are made of.
import { page, groups, comms, hosts, processes } from './data.js';
import { byId, el, replace } from './dom.js';
import { chart, palette, tooltip, axis, legend } from './charts.js';
import { table } from './table.js';
import { word } from './outliers.js';
import { count, amount, duration, percent, iso, known, operation, gbs } from './format.js';

export function head() {
  const job = page.job;
  const version =
    job.nccl_version > 0
      ? `NCCL ${Math.floor(job.nccl_version / 10000)}.${Math.floor(job.nccl_version / 100) % 100}` +
        `.${job.nccl_version % 100}`
      : null;
  const parts = [
    version,
    page.input_name ? `from ${page.input_name}` : null,
    page.records ? `${iso(page.first_us)} to ${iso(page.last_us)}` : null,
  ];
  replace(
    byId('job'),
    el('b', { text: page.head }),
    page.complete
      ? null
      : el('span', {}, ' (', el('a', { href: '#s-complete', text: 'what is missing' }), ')'),
    el('br'),
    parts.filter(Boolean).join(' · ')
  );
  document.title = `NCCL Inspector report${job.id ? `: job ${job.id}` : ''}`;
  byId('foot').textContent = [
    `nccl-inspector ${page.version || ''}`.trim(),
    job.formats ? `formats ${job.formats}` : null,
    job.producers ? `written by ${job.producers}` : null,
  ]
    .filter(Boolean)
    .join(' · ');
}

export function completeness() {
  const i = page.input;
  byId('hang').hidden = !page.hang;
  if (page.hang) {
    replace(
      byId('hang'),
      page.hang,
      el(
        'ul',
        {},
        el(
          'li',
          { text: 'More, also from black boxes: ' },
          el('code', { text: ['nccl-inspector', 'hang', ...page.input_paths].map(word).join(' ') })
        )
      )
    );
  }
  const verdict = byId('verdict');
  verdict.classList.add(page.complete ? 'good' : 'bad');
  replace(
    verdict,
    el('span', {
      text: page.complete
        ? 'COMPLETE: every operation that the logs know of is in these figures.'
        : 'INCOMPLETE: read the figures with this in mind.',
    }),
    i.trouble.length ? el('ul', {}, ...i.trouble.map((text) => el('li', { text }))) : null
  );

  const card = (value, label, bad) =>
    el('div', { class: bad ? 'card bad' : 'card' }, el('b', { text: value }), el('span', { text: label }));
  const words = (n, one, many = `${one}s`) => (n === 1 ? one : many);
  const lost = i.stated_losses,
    unreadable = i.bad_lines + i.orphans;
  const n_processes = processes.length + (processes.leftOut || 0),
    n_hosts = hosts.length + (hosts.leftOut || 0);
  replace(
    byId('cards'),
    card(count(page.records), words(page.records, 'record')),
    card(count(page.operations), words(page.operations, 'operation')),
    card(count(i.files), `${words(i.files, 'file')}, ${amount(i.bytes)}`, i.files_failed > 0),
    card(count(n_processes), `${words(n_processes, 'process', 'processes')} seen`, i.missing_ranks > 0),
    card(count(n_hosts), words(n_hosts, 'host'), i.missing_hosts > 0),
    card(count(lost), 'lost or unfinished, as the logs say', lost > 0),
    card(count(i.gaps), 'missing in sequence', i.gaps > 0),
    card(count(unreadable), `${words(unreadable, 'line')} not readable`, unreadable > 0)
  );

  const causes = [
    ...i.losses_by_cause.rows.map(([name, n]) => [`lost or unfinished: ${name}`, n]),
    ...i.bad_by_reason.rows.map(([name, n]) => [`line not read: ${name}`, n]),
    ...i.out_of_range_by.rows.map(([name, n]) => [`kept out of the statistics: ${name}`, n]),
    ['files that could not be read', i.files_failed],
    ['files cut at the end', i.cut_files],
    ['files damaged inside', i.damaged_files],
    ['missing in sequence, no cause stated', i.gaps],
    ['duplicates, counted once', i.duplicates],
    ['records without a marker before them', i.orphans],
    ['ranks without a log', i.missing_ranks],
    ['hosts without a log', i.missing_hosts],
    ['lines of a kind not known to this version', i.unknown_lines],
  ]
    .filter(([, n]) => n > 0)
    .map(([cause, n]) => ({ cause, n }));
  if (causes.length) {
    table(
      byId('losses'),
      [
        { title: 'Cause', get: (r) => r.cause, wrap: true },
        { title: 'Count', num: true, get: (r) => r.n, show: (r) => count(r.n) },
      ],
      causes,
      { file: 'losses.csv', page: 12, caption: '' }
    );
  } else replace(byId('losses'), el('p', { class: 'none', text: 'Nothing lost, nothing skipped.' }));
  const where = i.where.map((text) => el('li', { text, class: 'mono' }));
  // Nothing of these is lost: figures that have less in them than one may think.
  const notes = [
    [
      i.left_out_by_settings,
      "operation left out by the plugin's settings",
      "operations left out by the plugin's settings",
    ],
    [i.filtered_out, 'record left out by the filters asked for', 'records left out by the filters asked for'],
    [
      i.no_bandwidth,
      'record without a bandwidth: in the times only',
      'records without a bandwidth: in the times only',
    ],
    [
      page.clocks_disagree,
      'operation whose clocks disagree: it has no time from the first start to the last stop',
      'operations whose clocks disagree: they have no time from the first start to the last stop',
    ],
    [i.files_empty, 'empty file', 'empty files'],
  ]
    .filter(([n]) => n > 0)
    .map(([n, one, many]) => el('li', { text: `${count(n)} ${words(n, one, many)}` }));
  const list = (title, items) =>
    items.length ? [el('h3', { text: title }), el('ul', { class: 'plain' }, ...items)] : [];
  replace(byId('wheres'), ...list('Lines not read', where), ...list('Not lost, but good to know', notes));
}

const TOP = 15;
const cut = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);
const label = (c, n = 256) => `${c.name && c.name !== 'unknown' ? `${cut(c.name, n)} ` : ''}${c.id}`;

// Names are often shared: the end of the number tells them apart.
const brief = (c) => `${c.name && c.name !== 'unknown' ? `${cut(c.name, 8)} ` : ''}…${c.id.slice(-5)}`;

// Of the run, by the replay that says what findings cost: transfers on its critical path, what all findings
// together cost in a communicator's operations, and transfers beside that path, which cost nothing.
function sharesOfRun() {
  const run = page.run.run_us,
    cost = (c) => Math.max(0, c.cost_us || 0),
    path = (c) => Math.max(0, c.path_us || 0);
  const hidden = (c) => Math.max(0, (c.transfer_ns || 0) / 1e3 - path(c));
  const used = comms
    .filter((c) => path(c) + cost(c) + hidden(c) > 0)
    .sort((a, b) => path(b) + cost(b) - path(a) - cost(a) || hidden(b) - hidden(a));
  const shown = used.slice(0, TOP).reverse(),
    sum = (get) => used.reduce((n, c) => n + get(c), 0) / run;
  const lost = sum(cost) < 0.0005 ? 0 : sum(cost); // else it says 0.0 %
  byId('time-note').textContent =
    `Per communicator, as shares of the run: transfers on its critical path, ${percent(sum(path))} ` +
    `together; ` +
    `${lost > 0 ? `what the findings cost in its operations, ${percent(lost)} together; ` : ''}` +
    `transfers beside that path, which cost nothing.` +
    (used.length > TOP
      ? ` The ${TOP} that cost most, of ${count(used.length)}; all are in the table "Communicators".`
      : '');
  const parts = [
    ['transfers', path, (c) => c.transfer],
    ['lost to the findings', lost > 0 ? cost : () => 0, (c) => c.waiting],
    ['transfers beside the path', hidden, (c) => c.outside],
  ].filter(([, get]) => shown.some((x) => get(x) > 0));
  byId('c-time').style.height = `${Math.max(180, 96 + 30 * shown.length)}px`;
  chart(
    'c-time',
    () => {
      if (!shown.length) return null;
      const c = palette();
      return {
        grid: { left: 8, right: 24, top: 36, bottom: 36, containLabel: true },
        legend: legend(),
        tooltip: tooltip({
          trigger: 'axis',
          axisPointer: { type: 'shadow' },
          formatter: (at) => {
            const x = shown[at[0].dataIndex];
            return [
              `${label(x)} (${x.typeName}, ${x.n_ranks} ranks, ${x.nnodes} nodes)`,
              ...parts.map(([name, get]) => `${name}  ${duration(get(x))}, ${percent(get(x) / run)}`),
              `${count(x.operations)} operations`,
            ].join('\n');
          },
        }),
        xAxis: axis({
          type: 'value',
          min: 0,
          name: 'share of the run',
          nameGap: 26,
          axisLabel: { formatter: (v) => `${+v.toPrecision(3)} %` },
        }),
        yAxis: axis({
          type: 'category',
          data: shown.map((x) => (byId('c-time').clientWidth < 600 ? brief(x) : label(x, 18))),
          axisLabel: { color: c.text, hideOverlap: false },
          splitLine: { show: false },
        }),
        series: parts.map(([name, get, color]) => ({
          name,
          type: 'bar',
          stack: 'time',
          color: color(c),
          barMaxWidth: 22,
          data: shown.map((x) => (get(x) / run) * 100),
        })),
      };
    },
    'No communicator has operations of steps.'
  );
}

function sharesOfKernels() {
  const total = (c) => c.transfer_ns + c.waiting_ns + (known(c.outside_ns) ? c.outside_ns : 0);
  const used = comms
    .filter((c) => known(c.transfer_ns) && c.transfer_ns + c.waiting_ns > 0)
    .sort((a, b) => b.transfer_ns + b.waiting_ns - a.transfer_ns - a.waiting_ns);
  const shown = used.slice(0, TOP).reverse();
  const outside = shown.some((c) => known(c.outside_ns));
  byId('time-note').textContent =
    `Per communicator, mean over its ranks, collectives: transfer is what the last rank to arrive ` +
    `needs, waiting is what the others spend in kernels until it ` +
    `comes${outside ? ', outside is the rest of the time between its first and last operation' : ''}.` +
    (outside ? '' : ' The time outside NCCL is not shown: these logs do not say when operations started.') +
    (used.length > TOP
      ? ` The ${TOP} with the most time in kernels, of ${count(used.length)}; all are in the table ` +
        `"Communicators".`
      : '');
  byId('c-time').style.height = `${Math.max(180, 96 + 30 * shown.length)}px`;
  chart(
    'c-time',
    () => {
      if (!shown.length) return null;
      const c = palette();
      const part = (name, color, get, text) => ({
        name,
        type: 'bar',
        stack: 'time',
        color,
        data: shown.map((x) => ((get(x) || 0) / total(x)) * 100),
        barMaxWidth: 22,
        label: {
          show: true,
          color: text,
          fontSize: 11,
          formatter: (p) => (p.value >= 7 ? `${p.value.toFixed(0)} %` : ''),
        },
      });
      return {
        grid: { left: 8, right: 24, top: 36, bottom: 36, containLabel: true },
        legend: legend(),
        tooltip: tooltip({
          trigger: 'axis',
          axisPointer: { type: 'shadow' },
          formatter: (list) => {
            const x = shown[list[0].dataIndex];
            return [
              `${label(x)} (${x.typeName}, ${x.n_ranks} ranks, ${x.nnodes} nodes)`,
              `transfer  ${duration(x.transfer_ns / 1e3)}`,
              `waiting  ${duration(x.waiting_ns / 1e3)}`,
              outside ? `outside NCCL  ${duration(known(x.outside_ns) ? x.outside_ns / 1e3 : null)}` : null,
              `${count(x.operations)} operations`,
            ]
              .filter(Boolean)
              .join('\n');
          },
        }),
        xAxis: axis({
          type: 'value',
          max: 100,
          name: outside ? 'share of the time from first to last operation' : 'share of the time in kernels',
          nameGap: 26,
          axisLabel: { formatter: '{value} %' },
        }),
        yAxis: axis({
          type: 'category',
          data: shown.map((x) => (byId('c-time').clientWidth < 600 ? brief(x) : label(x, 18))),
          axisLabel: { color: c.text, hideOverlap: false },
          splitLine: { show: false },
        }),
        series: [
          part('transfer', c.transfer, (x) => x.transfer_ns, c.onTransfer),
          part('waiting', c.waiting, (x) => x.waiting_ns, '#1b2330'),
          ...(outside ? [part('outside NCCL', c.outside, (x) => x.outside_ns, c.text)] : []),
        ],
      };
    },
    'No communicator has collectives seen from two ranks or more.'
  );
}

export function whereTimeWent() {
  if (page.by_own_time && page.run) sharesOfRun();
  else sharesOfKernels();
  if (!groups.length) {
    replace(byId('top-groups'), el('p', { class: 'none', text: 'No operation in these logs.' }));
    return;
  }
  const share = (g) =>
    el(
      'span',
      {},
      percent(g.share),
      el('progress', { max: '1', value: String(g.share || 0), 'aria-hidden': 'true' })
    );
  table(
    byId('top-groups'),
    [
      { title: 'Operation', get: operation, text: true },
      { title: 'Type', get: (g) => g.typeName },
      { title: 'Timing', get: (g) => g.timingName },
      { title: 'Share of time', num: true, get: (g) => g.share, show: share },
      { title: 'Operations', num: true, get: (g) => g.operations, show: (g) => count(g.operations) },
      { title: 'p50', num: true, get: (g) => g.us.p50, show: (g) => duration(g.us.p50) },
      { title: 'p99', num: true, get: (g) => g.us.p99, show: (g) => duration(g.us.p99) },
      {
        title: 'Transfer p50',
        num: true,
        get: (g) => g.transfer_us.p50,
        show: (g) => duration(g.transfer_us.p50),
      },
      { title: 'Busbw p50', num: true, get: (g) => g.busbw.p50, show: (g) => gbs(g.busbw.p50) },
      {
        title: '% of peak',
        num: true,
        get: (g) => g.of_best,
        show: (g) => percent(g.of_best),
        help: 'p50 against the highest p90 of any size or communicator of this function and type',
      },
    ],
    groups.slice(0, 10),
    { page: 0 }
  );
}
