// A table: sorted by a click on a heading, paged, filtered, and given away as CSV.
import { el, replace, announce, download } from './dom.js';
import { count, known } from './format.js';

const PAGE = 25;

// Spreadsheets run what starts with = + - @: a text that does gets an apostrophe in front. What could steer a
// terminal is '?', as in the summary's own CSV files (exporter/base/text/safe_text.h).
const UNFIT = /[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
function csvField(value, isText) {
  if (!known(value)) return '';
  let text = String(value);
  if (isText) text = text.replace(UNFIT, '?').replace(/^[=+\-@]/, "'$&");
  return /[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
export function csv(columns, rows) {
  const lines = [columns.map((c) => csvField(c.csv || c.title, true)).join(',')];
  for (const row of rows) lines.push(columns.map((c) => csvField(c.get(row), !c.num)).join(','));
  return `${lines.join('\n')}\n`;
}

// columns: {title, csv (name in the file and for `sort`), get(row) -> raw value, show(row) -> text or
// element, num, hidden (CSV only), action (page only), text (long: cut, whole as title), wrap}; rows: list
// with leftOut. settings: caption, page (rows a page; 0 all), file (CSV name), sort [csv name, down], most
// (rows shown; CSV has all), row(row) -> class. Returns what puts other rows in their place: order, page and
// focus stay.
export function table(where, columns, rows, settings = {}) {
  const size = settings.page === undefined ? PAGE : settings.page;
  let [by, down] = settings.sort
    ? [columns.findIndex((c) => c.csv === settings.sort[0]), settings.sort[1]]
    : [-1, false];
  const visible = columns.map((c, i) => i).filter((i) => !columns[i].hidden);
  let page = 0;

  function sorted() {
    if (by < 0) return rows;
    const { get, num } = columns[by];
    const order = [...rows.keys()];
    order.sort((a, b) => {
      const x = get(rows[a]),
        y = get(rows[b]);
      // nothing known: last either way
      if (!known(x) || !known(y)) return known(x) ? -1 : known(y) ? 1 : a - b;
      const d = num ? x - y : String(x) < String(y) ? -1 : String(x) > String(y) ? 1 : 0;
      return (down ? -d : d) || a - b;
    });
    return order.map((i) => rows[i]);
  }

  function heading(column, i) {
    const state = by === i ? (down ? 'descending' : 'ascending') : 'none';
    const mark = by === i ? (down ? ' ▾' : ' ▴') : '';
    const button = el('button', {
      type: 'button',
      text: column.title + mark,
      title: column.help,
      'data-column': i,
      onclick: () => {
        if (by === i) down = !down;
        else {
          by = i;
          down = !!column.num;
        }
        page = 0;
        draw();
        announce(`Sorted by ${column.title}, ${down ? 'largest' : 'smallest'} first`);
        where.querySelector(`th button[data-column="${i}"]`).focus();
      },
    });
    return el(
      'th',
      { scope: 'col', class: column.num ? 'num' : column.action ? 'action' : null, 'aria-sort': state },
      column.action ? column.title : button
    );
  }

  function cell(column, row) {
    const shown = column.show ? column.show(row) : column.get(row);
    const text = column.text && typeof shown === 'string';
    return el(
      'td',
      {
        class: column.num ? 'num' : column.action ? 'action' : column.wrap ? 'wrap' : text ? 'text' : null,
        title: text ? shown : null,
      },
      known(shown) ? shown : '–'
    );
  }

  const body = el('tbody'),
    said = size ? el('span', { class: 'rows' }) : null;
  const turn = (text, by1) =>
    size
      ? el('button', {
          type: 'button',
          text,
          onclick: () => {
            page += by1;
            fill();
          },
        })
      : null;
  const back = turn('‹ Previous', -1),
    on = turn('Next ›', 1);

  function fill() {
    const list = sorted().slice(0, settings.most);
    const pages = size ? Math.max(1, Math.ceil(list.length / size)) : 1;
    page = Math.min(page, pages - 1);
    const part = size ? list.slice(page * size, (page + 1) * size) : list;
    const held = body.contains(document.activeElement) && document.activeElement;
    // rows may have one name
    const again = (b) =>
      ['aria-label', 'data-row'].every((name) => b.getAttribute(name) === held.getAttribute(name));
    replace(
      body,
      ...part.map((row) =>
        el('tr', { class: settings.row && settings.row(row) }, ...visible.map((i) => cell(columns[i], row)))
      )
    );
    // it is not lost with its row
    if (held) ([...body.querySelectorAll('button')].find(again) || where.firstChild).focus();
    if (!size) return;
    back.hidden = on.hidden = pages === 1;
    back.disabled = page === 0;
    on.disabled = page === pages - 1;
    said.textContent =
      `${list.length < rows.length ? `the first ${count(list.length)} of ` : ''}${count(rows.length)} ` +
      `row${rows.length === 1 ? '' : 's'}${pages > 1 ? `, page ${page + 1} of ${pages}` : ''}`;
  }

  function draw() {
    fill();
    replace(
      where,
      el(
        'div',
        { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': settings.caption || 'Table' },
        el(
          'table',
          {},
          settings.caption ? el('caption', { text: settings.caption }) : null,
          el('thead', {}, el('tr', {}, ...visible.map((i) => heading(columns[i], i)))),
          body
        )
      ),
      el(
        'div',
        { class: 'pager' },
        back,
        said,
        on,
        settings.file
          ? el('button', {
              type: 'button',
              class: 'csv',
              text: 'Download CSV',
              onclick: () => {
                download(
                  settings.file,
                  csv(
                    columns.filter((c) => !c.action),
                    sorted()
                  )
                );
                announce(`${settings.file}: ${rows.length} rows`);
              },
            })
          : null,
        rows.leftOut
          ? el('span', {
              class: 'badtext',
              text:
                `${count(rows.leftOut)} more left out of this page to keep it small; they are in ` +
                `summary.json`,
            })
          : null
      )
    );
  }
  draw();
  // not while something in it is pressed
  return (others) => {
    rows = others;
    if (!body.matches(':active')) fill();
  };
}
