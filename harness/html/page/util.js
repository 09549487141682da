'use strict';
// Elements, numbers as text, the tooltip, tables.

// An element with attributes and children. Strings become text, never markup.
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'text') element.textContent = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// Control characters are shown, not obeyed: ␛ for ESC.
function visible(text) {
  return String(text).replace(/[\u0000-\u001f\u007f]/g, (c) => (c === '\u007f' ? '\u2421' : String.fromCharCode(0x2400 + c.charCodeAt(0))));
}

// A long name without the parts of its path that the next one repeats: "/features.4/block.0.1" of
// "/features/features.4/block/block.0/block.0.1"; of what is still too long both ends, of which the last says most.
function shortened(text, length) {
  const whole = visible(text);
  if (whole.length <= length) return whole;
  const shown = whole.split('/').filter((part, i, parts) => part === '' || !(parts[i + 1] || '').startsWith(`${part}.`)).join('/');
  if (shown.length <= length) return shown;
  const head = Math.floor((length - 1) / 3);
  return `${shown.slice(0, head)}…${shown.slice(shown.length - (length - 1 - head))}`;
}

// A path, which breaks where its parts end.
function path(text) {
  return visible(text).split(/(?<=[/.])/).flatMap((part, i) => (i > 0 ? [el('wbr'), part] : [part]));
}

// JSON has no infinities: results.json writes "Infinity".
function number(value) {
  if (value === null || value === undefined) return null;
  const found = Number(value);
  return Number.isNaN(found) ? null : found;
}

function digits(value, count) {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  // A tie goes to the even digit, as in the terminal; toFixed goes to the larger.
  const text = value.toFixed(count);
  const isTie = /^50*$/.test((value.toFixed(100).split('.')[1] || '').slice(count));
  return isTie && '13579'.includes(text.slice(-1)) ? text.slice(0, -1) + (text.slice(-1) - 1) : text;
}

// Three significant digits.
function ms(value) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0';
  const places = Math.min(5, Math.max(0, 2 - Math.floor(Math.log10(value))));
  return digits(value, places);
}

function bytes(value) {
  if (!value) return '–';
  const [unit, size] = value >= 1e9 ? ['GB', 1e9] : value >= 1e6 ? ['MB', 1e6] : value >= 1e3 ? ['kB', 1e3] : ['B', 1];
  const scaled = value / size;
  return `${digits(scaled, size === 1 || scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2)} ${unit}`;
}

function percent(share) {
  return share === null || share === undefined ? '–' : `${digits(100 * share, 1)} %`;
}

function times(value) {
  return value === null || value === undefined ? '–' : `${digits(value, 2)}×`;
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The width of a chart among multiples: a column of style.css's grid, of 400 pixels at least, 16 apart.
function columnWidth(multiples) {
  const whole = multiples.clientWidth || 900;
  const columns = Math.max(1, Math.floor((whole + 16) / 416));
  return (whole - 16 * (columns - 1)) / columns;
}

const tooltip = {
  show(event, title, lines) {
    const box = document.getElementById('tooltip');
    box.replaceChildren(el('b', { text: shortened(title, 160) }), ...lines.filter(Boolean).map((line) => el('div', { text: shortened(line, 300) })));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
    box.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - height - 8))}px`;
  },
  hide() {
    document.getElementById('tooltip').hidden = true;
  },
};

// A table whose columns sort. Columns: {title, value(row), text(row) or cell(row), kind: 'text' or undefined, help, hidden}.
// Rows are walked along with the arrow keys; Enter and a click pick one.
class SortableTable {
  constructor(columns, { pick, key, sort = null, label }) {
    this.columns = columns;
    this.pick = pick;
    this.key = key;
    this.sorted = sort;  // {column, descending}
    this.head = el('tr');
    this.body = el('tbody');
    this.element = el('div', { class: 'scroll' }, el('table', { 'aria-label': label }, el('thead', {}, this.head), this.body));
    this.body.addEventListener('keydown', (event) => this.walk(event));
    columns.forEach((column, index) => {
      const button = el('button', { type: 'button', text: column.title, title: column.help, onclick: () => this.sortBy(index) });
      this.head.append(el('th', { class: column.kind === 'text' ? 'text' : '', scope: 'col' }, button));
    });
  }

  sortBy(index) {
    const again = this.sorted && this.sorted.column === index;
    const first = this.columns[index].kind !== 'text';
    this.sorted = { column: index, descending: again ? !this.sorted.descending : first };
    this.draw();
  }

  show(rows) {
    this.rows = rows;
    this.draw();
  }

  draw() {
    const rows = [...this.rows];
    [...this.head.children].forEach((cell, index) => {
      const here = this.sorted && this.sorted.column === index;
      if (here) cell.setAttribute('aria-sort', this.sorted.descending ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
    });
    if (this.sorted) {
      const { value, kind } = this.columns[this.sorted.column];
      const sign = this.sorted.descending ? -1 : 1;
      const absent = (x) => x === null || x === undefined || x === '';
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        if (absent(x) || absent(y)) return absent(x) - absent(y);  // What was not measured is last either way.
        return sign * (kind === 'text' ? String(x).localeCompare(String(y)) : x - y);
      });
    }
    this.body.replaceChildren(...rows.map((row) => this.rowElement(row)));
    this.mark(this.selectedKey);
  }

  rowElement(row) {
    const cells = this.columns.map((column) => {
      const content = column.cell ? column.cell(row) : el('span', { text: column.text ? column.text(row) : visible(column.value(row) ?? '–') });
      return el('td', { class: [column.kind === 'text' ? 'text' : '', column.class || ''].join(' ') }, content);
    });
    const element = el('tr', { class: this.pick ? 'pick' : '', tabindex: this.pick ? '0' : undefined, onclick: () => this.pick && this.pick(row) }, cells);
    element.row = row;
    return element;
  }

  walk(event) {
    const row = event.target.closest('tr');
    if (!row) return;
    const next = { ArrowDown: row.nextElementSibling, ArrowUp: row.previousElementSibling }[event.key];
    if (next) next.focus();
    else if (event.key === 'Enter' && this.pick) this.pick(row.row);
    else return;
    event.preventDefault();
  }

  mark(key) {
    this.selectedKey = key;
    for (const row of this.body.children) row.classList.toggle('selected', key !== undefined && this.key && this.key(row.row) === key);
  }
}

// Buttons of which one is pressed.
function choice(options, chosen, change, label) {
  const group = el('span', { class: 'group', role: 'group', 'aria-label': label });
  for (const [value, text] of options) {
    group.append(el('button', {
      type: 'button', text, 'aria-pressed': String(value === chosen), 'data-value': value,
      onclick: (event) => {
        for (const button of group.children) button.setAttribute('aria-pressed', String(button === event.currentTarget));
        change(value);
      },
    }));
  }
  return group;
}

function section(id, title, ...children) {
  return el('section', { id, 'aria-label': title }, el('h2', { text: title }), ...children);
}
