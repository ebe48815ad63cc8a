// What NICs and GPUs did while their ranks had collectives in flight: tables, bars, lines over the run.
import { page, devices, binTime } from './data.js';
import { byId, el, replace, options } from './dom.js';
import { table } from './table.js';
import { axis, chart, legend, measured, palette, redraw, tooltip, zoom } from './charts.js';
import { amount, count, gbs, inGbs, known, percent, short, times, unitFor } from './format.js';

const name = (d) => `${d.host} ${d.name}`;
const gpus = devices.filter((d) => d.source === 'gpu'),
  nics = devices.filter((d) => d.source !== 'gpu');
const n = (title, csv, show, help) => ({
  title,
  csv,
  help,
  num: true,
  get: (d) => d[csv],
  show: (d) => (known(d[csv]) ? show(d[csv], d) : null),
});
const t = (title, csv, help) => ({ title, csv, help, get: (d) => d[csv], text: true });
const rate = (v, d) => `${d.unsure ? '≈ ' : ''}${inGbs(v)}`;

const NIC = [
  t('Host', 'host'),
  t('NIC', 'name'),
  t('Of', 'ranks'),
  t(
    'Known by',
    'how',
    'nearest: its GPU is the nearest by PCI; of the host: nobody knows which rank uses it'
  ),
  n('Sent GB/s', 'tx', rate),
  n('Received GB/s', 'rx', rate),
  n('Of link', 'of_link', percent),
  n('Held', 'held', percent, 'share of the time in which the fabric kept it from sending'),
  n('Holds', 'holds', percent, 'share of the time in which it kept the fabric waiting: this host is slow'),
  n('Retries', 'retries', count, 'at most so many'),
  n('Timeouts', 'timeouts', count, 'at most so many'),
];
const GPU = [
  t('Host', 'host'),
  t('GPU', 'name'),
  t('Of', 'ranks'),
  n('SM clock MHz', 'clock', count),
  n('Lowest MHz', 'lowest', count),
  n('Busy', 'busy', percent),
  n('Power W', 'power', count),
  n('Late in', 'late', percent, 'share of the operations compared in which its rank came late'),
  t(
    'Throttled',
    'throttled',
    'why its clocks were lower than they could be, at any time while collectives ran'
  ),
];

const RATE = 'GB/s';
const FIGURES = {
  tx_bytes: ['Sent', RATE, 1],
  rx_bytes: ['Received', RATE, 1],
  tx_held: ['Held', '% of the time', 100],
  clock_sm: ['SM clock', 'MHz', 1],
};

function bars() {
  const shown = nics.slice(0, 48);
  if (!shown.length) return null;
  const c = palette();
  const bar = (title, key, color) => ({
    name: title,
    type: 'bar',
    data: shown.map((d) => d[key]),
    itemStyle: { color },
    barMaxWidth: 14,
  });
  return {
    legend: legend(),
    tooltip: tooltip({ trigger: 'axis', valueFormatter: gbs }),
    grid: { left: 60, right: 20, top: 34, bottom: 30, containLabel: true },
    xAxis: axis({
      type: 'category',
      data: shown.map(name),
      axisLabel: { rotate: shown.length > 6 ? 40 : 0 },
      splitLine: { show: false },
    }),
    yAxis: measured(
      'gbs',
      shown.flatMap((d) => [d.tx, d.rx]),
      'while collectives ran',
      { type: 'value', min: 0, nameGap: 42 }
    ),
    series: [bar('Sent', 'tx', c.series[0]), bar('Received', 'rx', c.series[4])],
  };
}

let figure = null;
function lines() {
  const list = devices.filter((d) => d.lines[figure]);
  if (!list.length) return null;
  const [title, unit, factor] = FIGURES[figure],
    ran = unitFor('us', [page.last_us - page.first_us]);
  return {
    legend: legend(),
    tooltip: tooltip({
      trigger: 'axis',
      valueFormatter: (v) => (unit === RATE ? gbs(v) : `${short(v)} ${unit}`),
    }),
    dataZoom: [zoom()],
    grid: { left: 60, right: 20, top: 34, bottom: 46, containLabel: true },
    xAxis: axis({
      type: 'value',
      min: 0,
      max: page.last_us - page.first_us,
      name: 'Time in the run',
      nameGap: 30,
      axisLabel: { formatter: (v) => (v === 0 ? '0' : `+${ran.withUnit(v)}`), showMaxLabel: false },
    }),
    yAxis:
      unit === RATE
        ? measured(
            'gbs',
            list.flatMap((d) => d.lines[figure]),
            title,
            { type: 'value', nameGap: 44 }
          )
        : axis({ type: 'value', name: `${title}, ${unit}`, nameGap: 44 }),
    series: list.map((d) => ({
      name: name(d),
      type: 'line',
      showSymbol: false,
      sampling: 'lttb',
      connectNulls: false,
      data: d.lines[figure].map((v, i) => [binTime(i) - page.first_us, known(v) ? v * factor : null]),
    })),
  };
}

// What NICs sent beside what NCCL says it sent, in sentences.
function sent() {
  if (!page.sent.length) return null;
  return el(
    'ul',
    {},
    ...page.sent.map(([host, nccl, nic, least, most]) =>
      el('li', {
        text:
          `${host}: NCCL sent ${amount(nccl)}, its NICs ${amount(nic)} while collectives ran ` +
          `(${amount(least)} to ${amount(most)}): ${times(nic / nccl)}` +
          `${least > 1.1 * nccl ? '; it was sent again, or a neighbour sent as well' : ''}.`,
      })
    )
  );
}

export function devicesBeside() {
  const section = byId('s-devices');
  if (!devices.length) {
    section.remove();
    document.querySelector('nav a[href="#s-devices"]').parentElement.remove();
    return;
  }
  if (nics.length) {
    table(byId('nics'), NIC, nics, { page: 16, file: 'nics.csv', caption: 'NICs while collectives ran' });
    replace(byId('nic-sent'), sent());
    chart('c-nics', bars, 'No NIC moved anything.');
  } else byId('nic-part').remove();
  if (gpus.length)
    table(byId('gpus'), GPU, gpus, { page: 16, file: 'gpus.csv', caption: 'GPUs while collectives ran' });
  else byId('gpu-part').remove();
  const there = Object.keys(FIGURES).filter((k) => devices.some((d) => d.lines[k]));
  if (!there.length) {
    byId('device-run').remove();
    return;
  }
  figure = there[0];
  const select = byId('device-figure');
  options(
    select,
    there.map((k) => [k, FIGURES[k][0]]),
    figure
  );
  select.addEventListener('change', () => {
    figure = select.value;
    redraw('c-devices');
  });
  chart('c-devices', lines, 'No samples.');
}
