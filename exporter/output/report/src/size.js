// Bandwidth against size: p50 with a p10-p90 band, one line per communicator type.
import { page, groups } from './data.js';
import { byId, options } from './dom.js';
import { chart, redraw, palette, tooltip, axis, legend, scale, measured } from './charts.js';
import { bytes, bytesTick, count, gbs, unitFor } from './format.js';

export function bandwidthBySize() {
  const usable = groups.filter((g) => g.busbw.n > 0);
  const total = (key) => (value) =>
    usable.filter((g) => g[key] === value).reduce((sum, g) => sum + g.share, 0);
  const distinct = (key) =>
    [...new Set(usable.map((g) => g[key]))].sort((a, b) => total(key)(b) - total(key)(a));
  const func = byId('size-func'),
    timing = byId('size-timing');
  options(
    func,
    distinct('func').map((f) => [f, f])
  );
  function fillTiming() {
    const list = [...new Set(usable.filter((g) => g.func === func.value).map((g) => g.timingName))];
    options(
      timing,
      list.map((t) => [t, t]),
      timing.value
    );
  }
  fillTiming();

  chart(
    'c-size',
    () => {
      const c = palette();
      const mine = usable.filter((g) => g.func === func.value && g.timingName === timing.value);
      if (!mine.length) return null;
      const rates = mine.flatMap((g) => [g.busbw.p10, g.busbw.p50, g.busbw.p90]),
        limits = scale(rates);
      const log = limits.type === 'log';
      const floor = (v) => (log ? Math.max(v, limits.min) : v);
      const sizes = [...new Set(mine.map((g) => g.bytes))].sort((a, b) => a - b);
      const series = [];
      page.types.forEach((type, t) => {
        const line = mine.filter((g) => g.type === t).sort((a, b) => a.bytes - b.bytes);
        if (!line.length) return;
        const color = c.series[t];
        series.push(
          {
            name: type,
            type: 'custom',
            silent: true,
            color,
            z: 1,
            encode: { x: 0, y: [1, 2] },
            data: line.map((g) => [Math.max(g.bytes, 1), floor(g.busbw.p10), floor(g.busbw.p90)]),
            // One shape for the whole band, drawn with its first point; a whisker where there is a single
            // size.
            renderItem: (params, api) => {
              if (params.dataIndexInside !== 0) return null;
              const low = line.map((g) => api.coord([Math.max(g.bytes, 1), floor(g.busbw.p10)]));
              const high = line.map((g) => api.coord([Math.max(g.bytes, 1), floor(g.busbw.p90)]));
              const clip = {
                type: 'rect',
                shape: {
                  x: params.coordSys.x,
                  y: params.coordSys.y,
                  width: params.coordSys.width,
                  height: params.coordSys.height,
                },
              };
              if (line.length === 1) {
                return {
                  type: 'line',
                  shape: { x1: low[0][0], y1: low[0][1], x2: high[0][0], y2: high[0][1] },
                  style: { stroke: color, lineWidth: 6, opacity: 0.35 },
                };
              }
              return {
                type: 'polygon',
                shape: { points: [...high, ...low.reverse()] },
                style: { fill: color, opacity: 0.2 },
                clipPath: clip,
              };
            },
          },
          {
            name: type,
            type: 'line',
            color,
            z: 3,
            symbol: ['circle', 'rect', 'triangle', 'diamond'][t],
            symbolSize: 8,
            lineStyle: { width: 2 },
            data: line.map((g) => ({ value: [Math.max(g.bytes, 1), floor(g.busbw.p50)], g })),
          }
        );
      });
      const least = Math.max(sizes[0], 1),
        most = Math.max(sizes[sizes.length - 1], 1);
      const narrow = sizes.length > 1 && most / least <= 10;
      const room = (most - least) / 16; // the outermost points do not lie on the edge
      return {
        grid: { left: 40, right: 24, top: 36, bottom: 40, containLabel: true },
        legend: legend(),
        tooltip: tooltip({
          trigger: 'item',
          formatter: ({ data: { g } }) =>
            `${g.func} ${bytes(g.bytes)}, ${g.typeName}\np50 ${gbs(g.busbw.p50)}\np10 ` +
            `${gbs(g.busbw.p10)}, p90 ${gbs(g.busbw.p90)}\n${count(g.busbw.n)} records`,
        }),
        xAxis: axis({
          type: narrow ? 'value' : 'log',
          name: 'message size',
          nameGap: 28,
          min: narrow ? least - room : least / 2,
          max: narrow ? most + room : most * 2,
          axisLabel: {
            ...(sizes.length === 1 ? { customValues: [least] } : {}),
            formatter: sizes.length === 1 ? bytes : narrow ? unitFor('bytes', [most]).withUnit : bytesTick,
            showMinLabel: false,
            showMaxLabel: false,
          },
        }),
        yAxis: measured('gbs', rates, 'bus bandwidth', { nameLocation: 'middle', nameGap: 48 }),
        series,
      };
    },
    'No record carries a bus bandwidth.'
  );
  func.addEventListener('change', () => {
    fillTiming();
    redraw('c-size');
  });
  timing.addEventListener('change', () => redraw('c-size'));
}
