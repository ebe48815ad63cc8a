// ECharts, only the pieces used; themes; and one place that knows every chart: drawn when it comes into view,
// again when the theme changes, all of them before printing.
import * as echarts from 'echarts/core';
import { BarChart, LineChart, ScatterChart, CustomChart } from 'echarts/charts';
import {
  GridComponent,
  TooltipComponent,
  LegendComponent,
  DataZoomComponent,
  VisualMapComponent,
  AriaComponent,
  MarkAreaComponent,
} from 'echarts/components';
import { CanvasRenderer } from 'echarts/renderers';
import { byId, el } from './dom.js';
import { unitFor } from './format.js';

echarts.use([
  BarChart,
  LineChart,
  ScatterChart,
  CustomChart,
  GridComponent,
  TooltipComponent,
  LegendComponent,
  DataZoomComponent,
  VisualMapComponent,
  AriaComponent,
  MarkAreaComponent,
  CanvasRenderer,
]);

// Okabe and Ito, told apart with every kind of colour blindness; the dark set is the same hues, lighter.
const LIGHT = {
  series: ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b58900', '#56b4e9', '#5d5d5d', '#882255'],
  transfer: '#0072b2',
  waiting: '#e69f00',
  outside: '#c3c8d1',
  onTransfer: '#ffffff',
  text: '#1b2330',
  dim: '#566173',
  line: '#d5dae2',
  card: '#ffffff',
  late: [178, 60, 0],
  even: [244, 245, 247],
  wait: [0, 92, 158],
  none: [255, 255, 255],
};
const DARK = {
  series: ['#56b4e9', '#f0853c', '#2fc79a', '#e3a1c6', '#e8c547', '#9ad2f5', '#b8bec9', '#d487a9'],
  transfer: '#56b4e9',
  waiting: '#e69f00',
  outside: '#4a5464',
  onTransfer: '#10151c',
  text: '#e6eaf1',
  dim: '#a0abbd',
  line: '#333c4a',
  card: '#1a2029',
  late: [255, 140, 66],
  even: [44, 52, 64],
  wait: [96, 178, 245],
  none: [26, 32, 41],
};

const charts = new Map(); // id -> {make, chart, seen}
let dark = false;
let printing = false;

export const palette = () => (dark && !printing ? DARK : LIGHT);

const FONT = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
function base() {
  const c = palette();
  return {
    animation: false,
    backgroundColor: 'transparent',
    color: c.series,
    textStyle: { color: c.text, fontFamily: FONT },
    aria: { enabled: true },
  };
}
// richText is drawn on the canvas: no markup is made of names, and the policy forbids inline style anyway.
export const tooltip = (more = {}) => {
  const c = palette();
  return {
    renderMode: 'richText',
    confine: true,
    backgroundColor: c.card,
    borderColor: c.line,
    borderWidth: 1,
    textStyle: { color: c.text, fontSize: 12, fontFamily: FONT, lineHeight: 17 },
    ...more,
  };
};
export function axis(more) {
  const c = palette();
  return {
    nameTextStyle: { color: c.dim },
    nameLocation: 'middle',
    axisLine: { show: true, lineStyle: { color: c.dim } },
    axisLabel: { color: c.dim, hideOverlap: true, ...(more.axisLabel || {}) },
    axisTick: { lineStyle: { color: c.line } },
    splitLine: { show: true, lineStyle: { color: c.line } },
    ...Object.fromEntries(Object.entries(more).filter(([k]) => k !== 'axisLabel')),
  };
}
export const legend = (more = {}) => ({
  type: 'scroll',
  top: 0,
  textStyle: { color: palette().text },
  pageTextStyle: { color: palette().dim },
  pageIconColor: palette().dim,
  ...more,
});
export const zoom = (more = {}) => ({
  type: 'inside',
  zoomOnMouseWheel: 'ctrl',
  moveOnMouseMove: 'shift',
  ...more,
});

// A log axis where the data span more than a decade; limits a little beyond the data, at 1, 2 or 5 times a
// power of ten.
export function scale(values) {
  const positive = values.filter((v) => v > 0);
  if (positive.length === 0) return { type: 'value' };
  const lo = Math.min(...positive),
    hi = Math.max(...positive);
  const nice = (v, up) => {
    const e = 10 ** Math.floor(Math.log10(v) + 1e-9);
    const steps = [1, 2, 5, 10].map((s) => s * e);
    return up ? steps.find((s) => s >= v * 0.9999) : [...steps].reverse().find((s) => s <= v * 1.0001);
  };
  if (hi / lo <= 10) return { type: 'value', min: 0 };
  return { type: 'log', min: nice(lo, false), max: nice(hi, true) };
}

// An axis of values of one kind (format.js), in one unit. name: what they are, "" where the tics say the
// unit; steps of time that are round in that unit too.
export function measured(kind, values, name, more = {}) {
  const limits = more.type ? {} : scale(values),
    log = (more.type || limits.type) === 'log';
  const ends = [limits.min, limits.max, more.min, more.max].filter((v) => typeof v === 'number');
  const unit = unitFor(kind, [...values, ...(log ? ends : [])], log);
  const most = [...values, ...ends].filter((v) => v > 0).reduce((a, b) => Math.max(a, b), 0);
  const raw = most / unit.size / 5,
    e = 10 ** Math.floor(Math.log10(raw || 1));
  const round =
    !log && kind === 'us' && unit.size > 1e6 && most > 0
      ? { interval: [1, 2, 5, 10].find((s) => s * e >= raw * 0.9999) * e * unit.size }
      : {};
  const inTics = !name || kind === 'number';
  return axis({
    ...limits,
    ...round,
    ...(name ? { name: unit.name && !inTics ? `${name}, ${unit.name}` : name } : {}),
    ...more,
    axisLabel: { formatter: inTics ? unit.withUnit : unit.text, ...(more.axisLabel || {}) },
  });
}

// The text of what lies below the pointer, beside it.
export function hover(instance, area, textAt) {
  const tip = el('div', { class: 'tip', hidden: true, role: 'tooltip' });
  area.parentElement.append(tip);
  instance.getZr().on('mousemove', (e) => {
    const text = textAt(e.offsetX, e.offsetY);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const most = area.offsetLeft + area.offsetWidth - tip.offsetWidth - 4; // it stays within the chart
    tip.style.left = `${Math.min(area.offsetLeft + e.offsetX + 14, most)}px`;
    tip.style.top = `${area.offsetTop + e.offsetY + 18}px`;
  });
  instance.getZr().on('globalout', () => {
    tip.hidden = true;
  });
}
// move([down, right]) by the arrow keys.
export function arrows(area, move) {
  area.tabIndex = 0;
  area.addEventListener('keydown', (e) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
    if (!step) return;
    e.preventDefault();
    move(step);
  });
}

// Paper is narrower than most windows, and a canvas does not follow: charts are drawn for it, the style fits
// them in.
const PAPER = 720;
function paperSize(node) {
  const main = document.querySelector('main').clientWidth || PAPER;
  return {
    width: Math.round((node.parentElement.clientWidth * PAPER) / main),
    height: parseFloat(node.style.height) || (node.classList.contains('tall') ? 420 : 280),
  };
}

function draw(entry) {
  const node = byId(entry.id);
  const option = entry.make();
  if (!option) {
    if (entry.chart) entry.chart.dispose();
    entry.chart = null;
    node.classList.remove('chart', 'tall');
    node.style.height = ''; // it was the picture's
    node.replaceChildren(el('p', { class: 'none', text: entry.empty }));
    return;
  }
  const size = printing ? paperSize(node) : { width: 'auto', height: 'auto' };
  if (!entry.chart) {
    node.replaceChildren();
    node.classList.add('chart');
    entry.chart = echarts.init(node, null, { renderer: 'canvas', ...(printing ? size : {}) });
    if (entry.ready) entry.ready(entry.chart);
  } else entry.chart.resize(size); // before the options: only these are painted at once
  entry.chart.setOption({ ...base(), ...option }, true);
  node.dataset.drawn = '1';
}

const seen =
  'IntersectionObserver' in window
    ? new IntersectionObserver(
        (list) => {
          for (const item of list) {
            const entry = charts.get(item.target.id);
            if (!item.isIntersecting || !entry || entry.seen) continue;
            entry.seen = true;
            draw(entry);
          }
        },
        { rootMargin: '300px' }
      )
    : null;

// make() returns ECharts options, or null when there is nothing to show: then `empty` stands there as text.
export function chart(id, make, empty, ready) {
  const entry = { id, make, empty, ready, chart: null, seen: false };
  charts.set(id, entry);
  if (seen) seen.observe(byId(id));
  else {
    entry.seen = true;
    draw(entry);
  }
}
export function redraw(id) {
  const entry = charts.get(id);
  if (entry && entry.seen) draw(entry);
}
export function redrawAll() {
  for (const entry of charts.values()) if (entry.seen) draw(entry);
}

addEventListener('resize', () => {
  if (printing) return;
  for (const entry of charts.values()) if (entry.chart) entry.chart.resize();
});
addEventListener('beforeprint', () => {
  printing = true;
  for (const entry of charts.values()) {
    entry.seen = true;
    draw(entry);
  }
});
addEventListener('afterprint', () => {
  printing = false;
  redrawAll();
});

export function theme(isDark) {
  dark = isDark;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  redrawAll();
}
