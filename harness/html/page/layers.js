'use strict';
// Layers: bars in the order of the run, and a table that sorts and searches.

const LAYER_METRICS = [
  ['ms', { title: 'ms', value: (l) => l.ms, text: (v) => `${ms(v)} ms` }],
  ['snr', { title: 'SNR, dB', value: (l) => l.snr, text: (v) => `${digits(v, 1)} dB` }],
  ['gmacs', { title: 'GMAC/s', value: (l) => l.gmacs, text: (v) => `${digits(v, 1)} GMAC/s` }],
  ['roof', { title: '% of the roof', value: (l) => (l.roofShare === null ? null : 100 * l.roofShare), text: (v) => `${digits(v, 0)} % of the roof` }],
  ['bytes', { title: 'MB moved', value: (l) => l.bytes / 1e6, text: (v) => `${digits(v, 2)} MB` }],
];

class LayersView {
  constructor(model) {
    this.model = model;
    this.variant = model.main;
    this.metric = 'ms';
    this.places = new Set(PLACES);
    this.build();
  }

  build() {
    const { model } = this;
    const measured = model.variants.map((variant, i) => [i, shortened(variant.name, 60)]).filter(([i]) => model.layers[i].length > 0);
    this.search = el('input', { type: 'search', placeholder: 'Search layers, ops, kernels', 'aria-label': 'Search the layers', id: 'layer-search', oninput: () => this.filter() });
    this.placeButtons = el('span', { class: 'group', role: 'group', 'aria-label': 'Runs in' });
    this.count = el('span', { class: 'muted', id: 'layer-count' });
    this.chart = el('div', { id: 'layer-chart' });
    this.table = this.makeTable();
    this.element = section('layers', 'Layers',
      el('div', { class: 'row' },
        measured.length > 1 && choice(measured, this.variant, (value) => this.show(value), 'Variant'),
        el('span', { class: 'muted', text: 'bars show' }), choice(LAYER_METRICS.map(([key, { title }]) => [key, title]), this.metric, (value) => { this.metric = value; this.drawChart(); }, 'Bars show')),
      this.chart,
      el('div', { class: 'row' }, this.search, this.placeButtons, this.count),
      this.table.element,
      el('p', { class: 'muted', text: 'ms: median of profiled runs at the first batch size and number of threads. Of the roof: the least time that one thread\'s peaks and memory allow, over the measured time. SNR: against the baseline\'s value, errors of earlier layers included.' }));
  }

  start() {
    this.show(this.variant);
  }

  makeTable() {
    const has = (field) => this.model.layers.flat().some((layer) => layer[field] !== null && layer[field] !== undefined && layer[field] !== '');
    const longest = () => d3.max(this.model.layers[this.variant], (layer) => layer.ms) || 1;
    const msCell = (layer) => {
      const bar = el('span', { class: 'bar' });
      bar.style.width = `${(5 * layer.ms) / longest()}em`;
      return el('span', {}, bar, ms(layer.ms));
    };
    const placeCell = (layer) => {
      const dot = el('span', { class: 'dot' });
      dot.style.background = css(PLACE_COLORS[layer.place]);
      return el('span', {}, dot, layer.place);
    };
    const columns = [
      { title: '#', value: (l) => l.index + 1, help: 'The order of the run' },
      { title: 'layer', kind: 'text', class: 'name', value: (l) => l.label, cell: (l) => el('span', { class: 'clamp', title: shortened(l.label, 500) }, path(l.label)) },
      { title: 'op', kind: 'text', value: (l) => l.op },
      { title: 'runs in', kind: 'text', value: (l) => l.place, cell: placeCell },
      { title: 'kernel', kind: 'text', value: (l) => l.kernel },
      { title: 'ms', value: (l) => l.ms, cell: msCell },
      { title: 'share', value: (l) => l.share, text: (l) => percent(l.share) },
      has('baselineMs') && { title: `${shortened(this.model.variants[0].name, 60)}, ms`, value: (l) => l.baselineMs ?? null, text: (l) => ms(l.baselineMs), help: 'What the baseline took for the same nodes' },
      has('baselineMs') && { title: 'speedup', value: (l) => (l.baselineMs ? l.baselineMs / l.ms : null), text: (l) => (l.baselineMs ? times(l.baselineMs / l.ms) : '–') },
      { title: 'SNR, dB', value: (l) => l.snr, text: (l) => digits(l.snr, 1) },
      { title: 'GMAC/s', value: (l) => l.gmacs, text: (l) => digits(l.gmacs, 1) },
      { title: 'of the roof', value: (l) => l.roofShare, text: (l) => (l.roofShare === null ? '–' : `${digits(100 * l.roofShare, 0)} %`) },
      { title: 'moved', value: (l) => l.bytes, text: (l) => bytes(l.bytes) },
      { title: 'ops/byte', value: (l) => l.intensity, text: (l) => digits(l.intensity, 1) },
    ].filter(Boolean);
    // First of all where nothing else is shown.
    const why = { title: 'why not INT8', kind: 'text', class: 'why', value: (l) => l.why, cell: (l) => el('span', { class: 'clamp', title: shortened(l.why, 500), text: visible(l.why) }) };
    if (has('why')) columns.splice(this.places.has('INT8') ? columns.length : 2, 0, why);
    return new SortableTable(columns, { pick: (layer) => app.select(layer.name || null, { layer }), key: (layer) => layer.name, label: 'Layers', sort: { column: columns.findIndex(({ title }) => title === 'ms'), descending: true } });
  }

  show(variant) {
    this.variant = variant;
    this.layers = this.model.layers[variant] || [];
    const present = PLACES.filter((place) => this.layers.some((layer) => layer.place === place));
    const all = present.every((place) => this.places.has(place));
    const button = (text, pressed, action, title) => el('button', { type: 'button', text, title, 'aria-pressed': String(pressed), onclick: action });
    this.placeButtons.replaceChildren(
      button('all', all, () => this.only(PLACES)),
      ...present.map((place) => button(`${place} ${this.layers.filter((layer) => layer.place === place).length}`, !all && this.places.has(place), () => this.only([place]), PLACE_HELP[place])));
    this.filter();
    this.drawChart();
  }

  only(places) {
    this.places = new Set(places);
    const table = this.makeTable();
    this.table.element.replaceWith(table.element);
    this.table = table;
    this.show(this.variant);
  }

  filter() {
    const text = this.search.value.trim().toLowerCase();
    const rows = this.layers.filter((layer) => this.places.has(layer.place) && [layer.label, layer.op, layer.kernel, layer.why].some((part) => part.toLowerCase().includes(text)));
    this.count.textContent = `${rows.length} of ${this.layers.length}, ${ms(d3.sum(rows, (layer) => layer.ms))} ms`;
    this.table.show(rows);
  }

  drawChart() {
    const metric = LAYER_METRICS.find(([key]) => key === this.metric)[1];
    const width = Math.max(300, this.chart.clientWidth || 900);
    const [height, left, bottom, top] = [240, 46, 10, 26];
    const finite = (value) => (value !== null && Number.isFinite(value) ? value : null);
    const baseline = (layer) => (this.metric === 'ms' ? layer.baselineMs ?? null : null);
    const x = d3.scaleBand(d3.range(this.layers.length), [left, width - 6]).paddingInner(this.layers.length > 200 ? 0 : 0.22);
    const highest = d3.max(this.layers, (layer) => Math.max(finite(metric.value(layer)) || 0, baseline(layer) || 0)) || 1;
    const y = d3.scaleLinear([0, highest], [height - bottom, top]).nice();
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', `${metric.title} of each layer, in the order of the run`);
    svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - 6)).tickFormat(''));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5));
    svg.append('text').attr('class', 'caption').attr('x', 2).attr('y', 11).text(`${metric.title}, layers in the order of the run`);
    const bars = svg.append('g').selectAll('g').data(this.layers).join('g').attr('class', 'pick');
    if (this.metric === 'ms') {
      bars.filter((layer) => baseline(layer)).append('rect').attr('x', (l) => x(l.index)).attr('width', x.bandwidth()).attr('y', (l) => y(baseline(l)))
        .attr('height', (l) => height - bottom - y(baseline(l))).attr('fill', css('--none')).attr('opacity', 0.45);
    }
    bars.append('rect').attr('class', 'bar-of-layer').attr('x', (l) => x(l.index) + (this.metric === 'ms' ? x.bandwidth() * 0.14 : 0)).attr('width', x.bandwidth() * (this.metric === 'ms' ? 0.72 : 1))
      .attr('y', (l) => y(finite(metric.value(l)) || 0)).attr('height', (l) => height - bottom - y(finite(metric.value(l)) || 0)).attr('fill', (l) => css(PLACE_COLORS[l.place])).attr('rx', 1.5);
    bars.append('rect').attr('x', (l) => x(l.index)).attr('width', x.step()).attr('y', top).attr('height', height - top - bottom).attr('fill', 'transparent');
    bars.nodes().forEach((bar) => {
      const layer = bar.__data__;
      bar.style.cursor = 'pointer';
      bar.addEventListener('click', () => app.select(layer.name || null, { layer }));
      bar.addEventListener('mouseleave', () => tooltip.hide());
      bar.addEventListener('mousemove', (event) => tooltip.show(event, layer.label, [
        `${layer.op}, ${layer.kernel}: ${ms(layer.ms)} ms, ${percent(layer.share)}`, layer.baselineMs && `${this.model.variants[0].name}: ${ms(layer.baselineMs)} ms`,
        this.metric !== 'ms' && metric.value(layer) !== null && metric.text(metric.value(layer)), layer.why]));
    });
    const legend = el('div', { class: 'legend' }, PLACES.filter((place) => this.layers.some((layer) => layer.place === place)).map((place) => {
      const dot = el('span', { class: 'dot' });
      dot.style.background = css(PLACE_COLORS[place]);
      return el('span', { title: PLACE_HELP[place] }, dot, place);
    }));
    if (this.metric === 'ms' && this.layers.some(baseline)) {
      const dot = el('span', { class: 'dot' });
      dot.style.background = css('--none');
      legend.append(el('span', {}, dot, `behind: ${shortened(this.model.variants[0].name, 60)}`));
    }
    this.chart.replaceChildren(svg.node(), legend);
  }

  mark(name) {
    this.table.mark(name);
  }
}
