// Rank x time, by what findings are judged: own time beyond that of ranks with the same work, or durations
// against the peers' median. The axes are ECharts'; the cells are painted by hand, since there may be
// 400,000, and where several fall on one pixel the one furthest from 1 is shown: one late rank among 2,048
// stays visible.
import { page, processes, hosts, heat, findings, ratioOf, partOf, binTime } from './data.js';
import { byId, el, options, announce } from './dom.js';
import { chart, redraw, palette, axis, zoom, hover, arrows } from './charts.js';
import { times, duration, count, known, percent } from './format.js';
import { runAxis } from './time_axis.js';

const cut = (text) => (text.length > 36 ? `…${text.slice(-35)}` : text); // the rank is at the end
// Steps of the cells' bytes to where the colour is full: a fifth of a step longer, or a factor of 2 shorter.
// By own time what is longer is late.
const SPAN = heat.by_own ? -80 : 24;

function colors() {
  const c = palette();
  const table = new Uint8ClampedArray(256 * 4);
  for (let b = 0; b < 256; b++) {
    const t = Math.max(-1, Math.min(1, (b - 128) / SPAN));
    const end = t < 0 ? c.late : c.wait,
      k = Math.abs(t) ** 0.8;
    for (let i = 0; i < 3; i++) table[b * 4 + i] = b ? c.even[i] + (end[i] - c.even[i]) * k : c.none[i];
    table[b * 4 + 3] = b ? 255 : 0;
  }
  return table;
}

export function rankByTime() {
  const order = byId('heat-order'),
    host = byId('heat-host');
  options(host, [['', 'all'], ...hosts.map((h, i) => [i, h.name])]);
  let rows = [];
  let cursor = null; // [row, bin] by keyboard

  function lateness(r) {
    if (!heat.by_own) return processes[r].late_ns || 0;
    return heat.cells
      .subarray(r * heat.bins, (r + 1) * heat.bins)
      .reduce((sum, byte) => sum + (partOf(byte) || 0), 0);
  }
  function arrange() {
    rows = [...Array(Math.min(heat.rows, processes.length)).keys()].filter(
      (r) => host.value === '' || processes[r].host === Number(host.value)
    );
    // As they come they are ordered by host, rank and GPU.
    if (order.value === 'early') rows.sort((a, b) => lateness(b) - lateness(a) || a - b);
  }
  arrange();

  const label = (r, brief) => {
    const p = processes[r];
    if (brief) return p.rankName;
    return `${p.hostName}${p.gpu >= 0 ? ` GPU ${p.gpu}` : ''} ${p.rankName}`;
  };
  const when = (bin) => (heat.bins ? `+${duration(binTime(bin, heat.run) - page.first_us)}` : '');
  const part = (v) =>
    !known(v)
      ? 'nothing to compare'
      : v > 0.01
        ? `${percent(v)} of a step longer than ranks with the same work`
        : v < -0.01
          ? `${percent(-v)} of a step shorter than ranks with the same work`
          : 'as long as ranks with the same work';
  function tell(row, bin) {
    const r = rows[row],
      v = ratioOf(heat.cells[r * heat.bins + bin]);
    if (heat.by_own) return `${label(r)}, ${when(bin)}: ${part(partOf(heat.cells[r * heat.bins + bin]))}`;
    const said = !known(v)
      ? 'nothing to compare'
      : v < 0.97
        ? `${times(v)} the peers' median: arrived late`
        : v > 1.03
          ? `${times(v)} the peers' median: waited`
          : `${times(v)} the peers' median`;
    return `${label(r)}, ${when(bin)}: ${said}`;
  }

  // The picture of the grid's area. Cell (row, bin) lies at x0 + bin * w, y0 + row * h; all in CSS pixels.
  let picture = null,
    pictureKey = '';
  function paint(area, x0, w, y0, h) {
    const ratio = window.devicePixelRatio || 1;
    const width = Math.max(1, Math.round(area.width * ratio)),
      height = Math.max(1, Math.round(area.height * ratio));
    const table = colors();
    const key = [width, height, x0, w, y0, h, order.value, host.value, table.subarray(4, 12)].join();
    if (key === pictureKey) return picture;
    // [first, behind the last) cell under each pixel of an axis, at least one.
    const under = (pixels, start, origin, size, n) =>
      Array.from({ length: pixels }, (_, p) => {
        const a = Math.floor((start + p / ratio - origin) / size + 1e-6),
          b = Math.ceil((start + (p + 1) / ratio - origin) / size - 1e-6);
        // More than one pixel to a cell: the cell at its middle, so that edges are sharp.
        const at = size * ratio >= 1 ? Math.floor((start + (p + 0.5) / ratio - origin) / size) : a;
        return [Math.max(0, at), Math.min(n, size * ratio >= 1 ? at + 1 : Math.max(b, a + 1))];
      });
    const columns = under(width, area.x, x0, w, heat.bins),
      lines = under(height, area.y, y0, h, rows.length);
    picture = el('canvas', { width, height });
    const context = picture.getContext('2d'),
      image = context.createImageData(width, height);
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        let best = 0;
        for (let r = lines[y][0]; r < lines[y][1]; r++) {
          const base = rows[r] * heat.bins;
          for (let b = columns[x][0]; b < columns[x][1]; b++) {
            const v = heat.cells[base + b];
            if (v && (!best || Math.abs(v - 128) > Math.abs(best - 128))) best = v;
          }
        }
        image.data.set(table.subarray(best * 4, best * 4 + 4), (y * width + x) * 4);
      }
    }
    context.putImageData(image, 0, 0);
    pictureKey = key;
    return picture;
  }

  // Boxes around what findings say: [number, row, from, to] in rows of the picture and bins.
  const bins = (us) => ((us - page.first_us) / (page.last_us - page.first_us || 1)) * heat.bins;
  const boxes = () =>
    (heat.by_own ? findings : []).flatMap((f) =>
      f.rows
        .map((r) => [
          f.number,
          rows.indexOf(r),
          f.from_step > 0 ? bins(f.from_us) : 0,
          f.to_step >= 0 ? bins(f.to_us) : heat.bins,
        ])
        .filter(([, row]) => row >= 0)
    );

  byId('heat-note').textContent =
    (heat.by_own
      ? `Each cell: how much longer the rank took between its operations than ranks with the same ` +
        `work, as a part of a step, by the numbers that findings come from. Orange: longer, the others ` +
        `waited for it; full from a fifth of a step on. Blue: ` +
        `shorter.${boxes().length ? ' Boxes: when a finding says so, with its number.' : ''}`
      : "Each cell: the rank's mean duration against the median of its peers in the same operations. " +
        'Orange: shorter, it arrived late and the others waited for it. Blue: longer, it waited.') +
    (heat.left_out ? ` ${count(heat.left_out)} processes left out.` : '');

  chart(
    'c-heat',
    () => {
      if (!rows.length || !heat.bins) return null;
      byId('c-heat').style.height = `${Math.max(220, Math.min(640, 110 + rows.length * 22))}px`;
      const c = palette();
      const css = (v) => `rgb(${v.join(',')})`;
      return {
        grid: { left: 12, right: 56, top: 14, bottom: 66, containLabel: true },
        xAxis: runAxis(
          heat.bins,
          heat.run,
          page.start_times
            ? 'time since the first operation'
            : 'time of the dump since the first one; a dump holds what ran since the one before'
        ),
        yAxis: axis({
          type: 'category',
          data: rows.map((r) => cut(label(r, byId('c-heat').clientWidth < 600))),
          inverse: true,
          splitLine: { show: false },
          axisTick: { show: false },
          axisLabel: { color: c.text, fontSize: 11, lineHeight: 17 },
        }),
        dataZoom: [
          zoom({ xAxisIndex: 0, filterMode: 'none' }),
          zoom({ yAxisIndex: 0, filterMode: 'none' }),
          ...(rows.length > 40
            ? [
                {
                  type: 'slider',
                  yAxisIndex: 0,
                  filterMode: 'none',
                  width: 18,
                  right: 8,
                  showDetail: false,
                  brushSelect: false,
                  borderColor: c.line,
                },
              ]
            : []),
        ],
        visualMap: {
          type: 'continuous',
          min: -1,
          max: 1,
          calculable: false,
          orient: 'horizontal',
          left: 'center',
          bottom: 0,
          itemWidth: 12,
          itemHeight: 160,
          seriesIndex: 0,
          dimension: 0,
          inRange: {
            color: heat.by_own
              ? [css(c.wait), css(c.even), css(c.late)]
              : [css(c.late), css(c.even), css(c.wait)],
          },
          text: heat.by_own ? ['+20 % of a step', 'shorter'] : ['waited 2×', 'late 0.5×'],
          textStyle: { color: c.dim },
        },
        series: [
          {
            type: 'custom',
            silent: true,
            data: [[0, 0]],
            clip: true,
            renderItem: (params, api) => {
              const s = params.coordSys;
              const [x0, middle] = api.coord([0, 0]),
                [w, h] = api.size([1, 1]);
              const y0 = middle - h / 2;
              const children = [
                {
                  type: 'image',
                  style: { image: paint(s, x0, w, y0, h), x: s.x, y: s.y, width: s.width, height: s.height },
                },
              ];
              for (const [number, row, from, to] of boxes()) {
                const high = Math.max(h, 8); // around a line that is thinner than the box's own
                children.push(
                  {
                    type: 'rect',
                    shape: {
                      x: x0 + from * w,
                      y: y0 + row * h - (high - h) / 2,
                      width: (to - from) * w,
                      height: high,
                    },
                    style: { fill: 'none', stroke: c.text, lineWidth: 1.5 },
                  },
                  {
                    type: 'text',
                    style: {
                      text: String(number),
                      x: x0 + from * w + 4,
                      y: y0 + row * h + h / 2,
                      fill: c.text,
                      fontSize: 11,
                      verticalAlign: 'middle',
                    },
                  }
                );
              }
              if (cursor) {
                children.push({
                  type: 'rect',
                  shape: { x: x0 + cursor[1] * w, y: y0 + cursor[0] * h, width: w, height: h },
                  style: { fill: 'none', stroke: c.text, lineWidth: 2 },
                });
              }
              return { type: 'group', children };
            },
          },
        ],
      };
    },
    'No operation was seen from two processes or more, so there are no peers to compare with. Ranks ' +
      'of one process are one row.',
    (instance) => {
      hover(instance, byId('c-heat'), (x, y) => {
        const at = cellAt(instance, x, y);
        return at && tell(...at);
      });
    }
  );

  function cellAt(instance, x, y) {
    if (!instance.containPixel('grid', [x, y])) return null;
    const [bin] = instance.convertFromPixel('grid', [x, y]);
    const row = Math.round(instance.convertFromPixel({ yAxisIndex: 0 }, y));
    return row < 0 || row >= rows.length
      ? null
      : [row, Math.max(0, Math.min(heat.bins - 1, Math.floor(bin)))];
  }

  arrows(byId('c-heat'), (step) => {
    if (!rows.length) return;
    cursor = cursor ? [cursor[0] + step[0], cursor[1] + step[1]] : [0, 0];
    cursor[0] = Math.max(0, Math.min(rows.length - 1, cursor[0]));
    cursor[1] = Math.max(0, Math.min(heat.bins - 1, cursor[1]));
    redraw('c-heat');
    announce(tell(...cursor));
  });
  const again = () => {
    cursor = null;
    arrange();
    redraw('c-heat');
  };
  order.addEventListener('change', again);
  host.addEventListener('change', again);
}
