'use strict';
// Quantized layers: how far each is from FP32, by its own fault and with what came before, and how its ranges fit.

class QuantizationView {
  constructor(model) {
    this.model = model;
    const variants = model.variants.map((variant, i) => [i, shortened(variant.name, 60)]).filter(([i]) => this.layersOf(i).length > 0);
    this.variant = variants.some(([i]) => i === model.main) ? model.main : variants[0][0];
    this.chart = el('div', { id: 'quantization-chart' });
    this.ranges = el('div', { class: 'multiples', id: 'quantization-ranges' });
    this.table = this.makeTable();
    this.element = section('quantization', 'Quantization',
      el('div', { class: 'row' }, variants.length > 1 && choice(variants, this.variant, (value) => { this.variant = value; this.picked = null; this.draw(); }, 'Variant')),
      this.chart, this.ranges, this.table.element,
      el('p', { class: 'muted', text: 'Local: the layer alone, on codes of the float values: what it loses by itself. Accumulated: with all layers before it in INT8. Clipped: float values beyond what the codes can hold. Weights, spread: the largest range of an output channel over the smallest. Measured on four samples, against the baseline\'s values.' }));
  }

  static of(model) {
    return model.layers.flat().some((layer) => layer.quantization) ? new QuantizationView(model) : null;
  }

  layersOf(variant) {
    return (this.model.layers[variant] || []).filter((layer) => layer.quantization);
  }

  start() {
    this.draw();
  }

  makeTable() {
    const part = (field, of, places) => ({ value: (l) => number(l.quantization[of]?.[field]), text: (l) => digits(number(l.quantization[of]?.[field]), places) });
    const significant = (value) => (value === null || value === undefined ? '–' : Number(value.toPrecision(3)).toString());
    const columns = [
      { title: '#', value: (l) => l.index + 1, help: 'The order of the run' },
      { title: 'layer', kind: 'text', class: 'name', value: (l) => l.label, cell: (l) => el('span', { class: 'clamp', title: shortened(l.label, 500) }, path(l.label)) },
      { title: 'op', kind: 'text', value: (l) => l.op },
      { title: 'local SNR, dB', ...part('snr_db', 'local', 1), help: 'The layer alone, on codes of the float values' },
      { title: 'accumulated', ...part('snr_db', 'accumulated', 1), help: 'With all layers before it in INT8' },
      { title: 'local cosine', ...part('cosine', 'local', 6) },
      { title: 'accumulated', ...part('cosine', 'accumulated', 6) },
      { title: 'local max error', value: (l) => number(l.quantization.local?.max_abs), text: (l) => significant(number(l.quantization.local?.max_abs)) },
      { title: 'accumulated', value: (l) => number(l.quantization.accumulated.max_abs), text: (l) => significant(number(l.quantization.accumulated.max_abs)) },
      { title: 'clipped, %', value: (l) => number(l.quantization.clipped_percent), text: (l) => digits(number(l.quantization.clipped_percent), 3) },
      { title: 'range', value: (l) => number(l.quantization.range_high) - number(l.quantization.range_low) || null, text: (l) => (number(l.quantization.range_low) === null ? '–' : `${significant(l.quantization.range_low)} to ${significant(l.quantization.range_high)}`) },
      { title: 'weights, spread', value: (l) => this.spread(l), text: (l) => times(this.spread(l)), help: 'The largest range of an output channel over the smallest' },
    ];
    return new SortableTable(columns, { pick: (layer) => app.select(layer.name, { layer }), key: (layer) => layer.name, label: 'Quantized layers', sort: { column: 3, descending: false } });
  }

  spread(layer) {
    const ranges = layer.quantization.weight_ranges.filter((range) => range > 0);
    return ranges.length > 1 ? d3.max(ranges) / d3.min(ranges) : null;
  }

  draw() {
    this.layers = this.layersOf(this.variant);
    const local = (layer) => number(layer.quantization.local?.snr_db) ?? Infinity;
    this.picked = this.picked || this.layers.reduce((worst, one) => (local(one) < local(worst) ? one : worst), this.layers[0]);
    this.table.show(this.layers);
    this.drawErrors();
    this.drawRanges();
  }

  // A layer was picked, anywhere.
  mark(name) {
    this.table.mark(name);
    const found = this.layers.find((layer) => layer.name === name);
    if (!found) return;
    this.picked = found;
    this.drawErrors();
    this.drawRanges();
  }

  drawErrors() {
    const { layers } = this;
    const width = Math.max(300, this.chart.clientWidth || 900);
    const [height, left, right, top, bottom] = [220, 46, 8, 26, 12];
    const kinds = [['accumulated', '--muted', d3.symbolCircle], ['local', '--accent', d3.symbolDiamond]];
    const points = kinds.flatMap(([kind, colour, symbol]) => layers.map((layer, i) => ({ layer, i, kind, colour, symbol, snr: number(layer.quantization[kind]?.snr_db) })).filter(({ snr }) => Number.isFinite(snr) && snr !== null));
    const x = d3.scalePoint(d3.range(layers.length), [left, width - right]).padding(0.6);
    const [low, high] = d3.extent(points, ({ snr }) => snr);
    const y = d3.scaleLinear([(low ?? 20) - 2, (high ?? 60) + 2], [height - bottom, top]).nice();
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', 'SNR of each quantized layer, local and accumulated');
    svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5).tickSize(-(width - left - right)).tickFormat(''));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(5));
    svg.append('text').attr('class', 'caption').attr('x', 2).attr('y', 11).text('SNR, dB, layers in the order of the run: lower is worse');
    for (const [kind, colour] of kinds) {
      const line = d3.line().x(({ i }) => x(i)).y(({ snr }) => y(snr));
      svg.append('path').attr('d', line(points.filter((one) => one.kind === kind)) || 'M0,0').attr('fill', 'none').attr('stroke', css(colour)).attr('stroke-opacity', 0.45);
    }
    if (this.picked) svg.append('line').attr('x1', x(layers.indexOf(this.picked))).attr('x2', x(layers.indexOf(this.picked))).attr('y1', top - 8).attr('y2', height - bottom).attr('stroke', css('--accent')).attr('stroke-dasharray', '3 3');
    const dots = svg.append('g').selectAll('path').data(points).join('path').attr('class', 'point').attr('d', ({ symbol }) => d3.symbol().type(symbol).size(layers.length > 150 ? 16 : 40)())
      .attr('transform', ({ i, snr }) => `translate(${x(i)},${y(snr)})`).attr('fill', ({ colour }) => css(colour));
    dots.nodes().forEach((dot) => {
      const { layer } = dot.__data__;
      dot.style.cursor = 'pointer';
      dot.addEventListener('click', () => app.select(layer.name, { layer }));
      dot.addEventListener('mouseleave', () => tooltip.hide());
      dot.addEventListener('mousemove', (event) => tooltip.show(event, layer.label, [layer.op, ...['local', 'accumulated'].map((kind) => {
        const error = layer.quantization[kind];
        return error && `${kind}: SNR ${digits(number(error.snr_db), 1)} dB, cosine ${digits(number(error.cosine), 6)}`;
      })]));
    });
    this.chart.replaceChildren(svg.node(), el('div', { class: 'legend' }, el('span', { text: '◆ local: the layer alone' }), el('span', { text: '● accumulated: INT8 up to there' })));
  }

  drawRanges() {
    const { quantization } = this.picked;
    this.ranges.replaceChildren(...[
      quantization.histogram.length > 0 && this.chartOf(`Values of ${shortened(this.picked.label, 60)}`, (svg, width) => this.drawHistogram(svg, width, quantization)),
      quantization.weight_ranges.length > 1 && this.chartOf('Its weights: the largest magnitude in each output channel', (svg, width) => this.drawWeights(svg, width, quantization.weight_ranges)),
    ].filter(Boolean));
  }

  chartOf(title, draw) {
    const whole = this.ranges.clientWidth || 900;
    const columns = Math.max(1, Math.floor((whole + 16) / 416));
    const width = (whole - 16 * (columns - 1)) / columns;
    const svg = d3.create('svg').attr('width', width).attr('height', 190).attr('role', 'img').attr('aria-label', title);
    const note = draw(svg, width);
    return el('div', {}, el('h3', { text: title }), svg.node(), el('p', { class: 'muted', text: note }));
  }

  // The counts go by their square root, so that a few outliers are seen.
  drawHistogram(svg, width, { histogram, value_min: least, value_max: most, range_low, range_high, clipped_percent }) {
    const [height, left, right, top, bottom] = [190, 10, 10, 10, 24];
    const [low, high] = [number(range_low), number(range_high)];
    const span = [Math.min(least, low ?? least), Math.max(most, high ?? most)];
    const pad = (span[1] - span[0]) * 0.02 || 1;
    const x = d3.scaleLinear([span[0] - pad, span[1] + pad], [left, width - right]);
    const y = d3.scaleSqrt([0, d3.max(histogram) || 1], [height - bottom, top]);
    if (low !== null) {
      svg.append('rect').attr('class', 'range').attr('x', x(low)).attr('width', x(high) - x(low)).attr('y', top - 6).attr('height', height - bottom - top + 6).attr('fill', css('--good-soft'));
      for (const edge of [low, high]) svg.append('line').attr('x1', x(edge)).attr('x2', x(edge)).attr('y1', top - 6).attr('y2', height - bottom).attr('stroke', css('--good'));
    }
    const step = (most - least) / histogram.length;
    svg.append('g').selectAll('rect').data(histogram).join('rect').attr('x', (_, i) => x(least + i * step)).attr('width', Math.max(1, x(step) - x(0) - 0.5)).attr('y', (v) => y(v)).attr('height', (v) => height - bottom - y(v))
      .attr('fill', (_, i) => css(low !== null && (least + (i + 0.5) * step < low || least + (i + 0.5) * step > high) ? '--bad' : '--int8'));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(6));
    const clipped = number(clipped_percent);
    return low === null ? 'The result is floats: no range was chosen. Heights are square roots of counts.'
      : `Green: what the codes can hold; ${clipped > 0 ? `${Number(clipped.toPrecision(2))} % are clipped` : 'nothing is clipped'}. Heights are square roots of counts.`;
  }

  drawWeights(svg, width, ranges) {
    const [height, left, right, top, bottom] = [190, 46, 10, 10, 24];
    const x = d3.scaleLinear([0, ranges.length], [left, width - right]);
    const y = d3.scaleLinear([0, d3.max(ranges) || 1], [height - bottom, top]).nice();
    svg.append('g').attr('class', 'grid').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(4).tickSize(-(width - left - right)).tickFormat(''));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(4));
    svg.append('g').selectAll('rect').data(ranges).join('rect').attr('x', (_, i) => x(i)).attr('width', Math.max(0.8, x(1) - x(0) - 0.4)).attr('y', (v) => y(v)).attr('height', (v) => height - bottom - y(v)).attr('fill', css('--fp32'));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(6).tickFormat((v) => (Number.isInteger(v) ? String(v) : '')));
    return `From ${Number(d3.min(ranges).toPrecision(3))} to ${Number(d3.max(ranges).toPrecision(3))}; with one scale for all, the smallest would get ${digits(127 * d3.min(ranges) / (d3.max(ranges) || 1), 0)} of the 127 steps.`;
  }
}
