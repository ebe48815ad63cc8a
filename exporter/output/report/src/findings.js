// What a reader should look at first, in sentences, and what it costs. The judgement is the summary's; here
// it is only shown.
import { page, findings as list } from './data.js';
import { bar, byId, el, replace } from './dom.js';
import { axis, chart, legend, measured, palette, tooltip } from './charts.js';
import { copyButton, word } from './outliers.js';
import { count, duration, known, percent } from './format.js';

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

// One finding: a bar is the run, as the bars of all that are shares of it.
function card(f) {
  const run = page.run.run_us,
    at = (us) => Math.max(0, Math.min(100, (us / run) * 100));
  const share = (us) => `${((us / run) * 100).toFixed(1)} %`; // as the sentence has it
  const row = (title, figure, text) =>
    el('div', { class: 'row' }, el('span', { class: 'dim', text: title }), figure, el('span', { text }));
  const parts = [el('p', { text: `${f.text}.` })];
  if (f.lost_us > 0) {
    parts.push(
      row(
        'Cost',
        bar([0, 100, 'ground'], [0, at(f.lost_us), 'value'], [at(f.low_us), at(f.high_us), 'range', 3.5, 3]),
        `${duration(f.lost_us)}, ${share(f.lost_us)} (${duration(f.low_us)} to ${duration(f.high_us)}` +
          `, ${share(f.low_us)} to ${share(f.high_us)})`
      )
    );
  }
  if (page.steps && f.lost_us > 0) {
    const n = page.steps.n_steps,
      whole = f.from_step < 0 && f.to_step < 0;
    const from = Math.max(f.from_step, 0),
      to = f.to_step < 0 ? n - 1 : Math.min(f.to_step, n - 1);
    parts.push(
      row(
        'Steps',
        bar([0, 100, 'ground'], [(from / n) * 100, ((to + 1) / n) * 100, 'value']),
        whole ? `all ${count(n)}` : `${count(from)} to ${count(to)} of ${count(n)}`
      )
    );
  }
  if (f.evidence) parts.push(el('p', { class: 'note', text: `Evidence: ${f.evidence}` }));
  if (f.next) {
    const logs = page.input_paths.map(word).join(' ') || 'LOGS';
    const text = `nccl-inspector ${f.next.replace('LOGS', () => logs)}`;
    parts.push(el('p', { class: 'next' }, el('code', { text }), ' ', copyButton(text)));
  }
  return el('li', { value: f.number }, ...parts);
}

// Its number is that of the terminal and of summary.json, also where notes stand apart.
list.forEach((f, i) => {
  f.number = i + 1;
});

export function findings() {
  const more = page.findings_left_out,
    all = page.findings_of_all,
    cards = page.by_own_time && page.run;
  const left = more
    ? cards
      ? `${count(more)} more: see summary/summary.json.`
      : `${count(more)} more: see the tables "Lateness of ranks", "Communicators" and "Lateness of hosts".`
    : '';
  const faults = list.filter((f) => !f.note),
    notes = list.filter((f) => f.note);
  const items = (of, last) =>
    el(cards ? 'ol' : 'ul', {}, ...of.map((f) => (cards ? card(f) : el('li', { text: `${f.text}.` }))), last);
  replace(
    byId('findings'),
    faults.length
      ? items(faults, left && !cards ? el('li', { class: 'dim', text: left }) : null)
      : el('p', {
          class: 'none',
          text: `No rank, host or communicator stands out${page.hang ? ' in what had ended by then' : ''}.`,
        }),
    left && cards ? el('p', { class: 'dim', text: left }) : null,
    ...(notes.length ? [el('h3', { text: 'Also seen' }), items(notes)] : []),
    all ? el('p', { text: sentence(all) }) : null,
    el('p', { class: 'note', text: sentence(page.findings_rules) })
  );
}

// The way from the run's begin to its end, and how long it would be without what stands out.
export function runParts() {
  const run = page.run;
  if (!run) {
    byId('run-part').remove();
    return;
  }
  byId('run-note').textContent = sentence(run.text);
  const rows = list.length ? ['without the findings', 'as it was'] : ['as it was'];
  byId('c-parts').style.height = `${96 + 30 * rows.length}px`;
  chart(
    'c-parts',
    () => {
      const c = palette();
      const part = (name, color, us, at) => ({
        name,
        type: 'bar',
        stack: 'run',
        color,
        barMaxWidth: 22,
        data: rows.map((_, i) => (i === at ? us : null)),
      });
      const whole = rows.length - 1;
      return {
        grid: { left: 8, right: 24, top: 36, bottom: 26, containLabel: true },
        legend: legend(),
        tooltip: tooltip({
          formatter: (p) => `${p.seriesName}  ${duration(p.value)} (${percent(p.value / run.run_us)})`,
        }),
        xAxis: measured('us', [run.run_us], '', {
          type: 'value',
          max: run.run_us,
          axisLabel: { showMaxLabel: false },
        }),
        yAxis: axis({
          type: 'category',
          data: rows,
          axisLabel: { color: c.text },
          splitLine: { show: false },
        }),
        series: [
          part('computing', c.series[2], run.own * run.run_us, whole),
          part('transfers', c.transfer, run.transfer * run.run_us, whole),
          part('pauses', c.series[1], run.pauses * run.run_us, whole),
          ...(whole ? [part('without the findings', c.outside, run.without_us, 0)] : []),
        ],
      };
    },
    ''
  );
}
