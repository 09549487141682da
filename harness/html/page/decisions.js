'use strict';
// What to decide by: passes switched off, layers alone in either precision, and what a search for mixed precision tried.

function signedMs(value) {
  return value === null || value === undefined ? '–' : `${value >= 0 ? '+' : '−'}${ms(Math.abs(value))}`;
}

function gainText(gain) {
  return gain ? `${signedMs(gain.low)} to ${signedMs(gain.high)}` : '–';
}

// How right a candidate is: top-1, or bits per byte.
function accuracyText(network) {
  const top1 = number(network && network.top1);
  if (top1 !== null) return `${digits(top1, 2)} %`;
  const bits = number(network && network.bits_per_byte);
  return bits === null ? '–' : digits(bits, 4);
}

class AblationView {
  constructor(ablation) {
    const rows = [{ pass: '(nothing)', without: ablation.whole, why_not: '', same: false }, ...ablation.rows];
    const of = (field) => (row) => number(row.without && row.without[field]);
    const gain = (row) => number(row.gained_ms && row.gained_ms.median);
    this.table = new SortableTable([
      { title: 'without', kind: 'text', value: (row) => row.pass },
      { title: 'ms', value: of('ms'), text: (row) => ms(of('ms')(row)) },
      { title: 'the pass gains, ms', value: gain, text: (row) => signedMs(gain(row)), help: 'The median without the pass less that with it' },
      { title: '95 % of it within', value: gain, text: (row) => gainText(row.gained_ms) },
      { title: 'SNR, dB', value: of('snr_db'), text: (row) => digits(of('snr_db')(row), 1), help: 'Of the outputs against the baseline\'s' },
      { title: 'accuracy', value: (row) => of('top1')(row) ?? of('bits_per_byte')(row), text: (row) => accuracyText(row.without) },
      { title: 'weights', value: of('weight_bytes'), text: (row) => bytes(of('weight_bytes')(row)) },
      { title: 'memory', value: of('peak_memory_bytes'), text: (row) => bytes(of('peak_memory_bytes')(row)) },
      { title: 'note', kind: 'text', class: 'why', value: (row) => (row.same ? 'the same network' : row.why_not && `not measured: ${row.why_not}`),
        cell: (row) => el('span', { class: 'clamp', text: visible(row.same ? 'the same network' : row.why_not ? `not measured: ${row.why_not}` : '') }) },
    ], { key: (row) => row.pass, label: 'Ablation' });
    this.element = section('ablation', 'Ablation',
      el('p', { class: 'muted', text: `The pipeline of ${shortened(ablation.variant, 60)} without each of its passes: batch ${ablation.batch}, ${plural(ablation.threads, 'thread')}, timed in turns; accuracy of ${plural(ablation.samples, 'sample')}. The interval is that of the difference of both medians, by the bootstrap: around 0 the pass gained nothing that can be told from noise.` }),
      this.table.element);
    this.rows = rows;
  }

  start() {
    this.table.show(this.rows);
  }
}

class SensitivityView {
  constructor(sensitivity) {
    this.sensitivity = sensitivity;
    this.box = el('div', { id: 'sensitivity-chart' });
    const harm = (field) => (row) => number(row.int8 && row.int8[field]);
    const gain = (row) => number(row.fp32_lost_ms && row.fp32_lost_ms.median);
    const logits = number(sensitivity.int8.kl_divergence_bits) !== null;
    this.search = el('input', { type: 'search', placeholder: 'Search layers', 'aria-label': 'Search the layers alone', oninput: () => this.filter() });
    this.table = new SortableTable([
      { title: 'layers', kind: 'text', class: 'name', value: (row) => row.name, cell: (row) => el('span', { title: shortened(row.nodes.join(', '), 500), text: shortened(row.name, 80) }) },
      { title: 'alone in INT8: SNR, dB', value: harm('snr_db'), text: (row) => digits(harm('snr_db')(row), 1), help: 'Of the outputs against FP32; the less, the more this layer harms' },
      logits && { title: 'KL, bits', value: harm('kl_divergence_bits'), text: (row) => harm('kl_divergence_bits')(row)?.toExponential(1) ?? '–' },
      logits && { title: 'agreement, %', value: harm('agreement'), text: (row) => digits(harm('agreement')(row), 1) },
      { title: 'alone in FP32: SNR, dB', value: (row) => number(row.fp32 && row.fp32.snr_db), text: (row) => digits(number(row.fp32 && row.fp32.snr_db), 1), help: 'All others are in INT8' },
      { title: 'INT8 gains, ms', value: gain, text: (row) => signedMs(gain(row)), help: 'The time with this layer in FP32 less that with all in INT8' },
      { title: '95 % of it within', value: gain, text: (row) => gainText(row.fp32_lost_ms) },
      { title: 'note', kind: 'text', class: 'why', value: (row) => row.why_not, cell: (row) => el('span', { class: 'clamp', text: visible(row.why_not) }) },
    ].filter(Boolean), { pick: (row) => app.select(row.nodes[row.nodes.length - 1]), key: (row) => row.nodes[row.nodes.length - 1], label: 'Layers alone', sort: { column: 1, descending: false } });
    const { fp32, int8 } = sensitivity;
    this.element = section('sensitivity', 'Sensitivity',
      el('p', { class: 'muted', text: `Each layer of ${shortened(sensitivity.variant, 60)} alone in INT8, and alone in FP32: batch ${sensitivity.batch}, ${plural(sensitivity.threads, 'thread')}, timed in turns; errors on ${plural(sensitivity.samples, 'calibration sample')}. All in FP32 take ${ms(fp32.ms)} ms, all in INT8 ${ms(int8.ms)} ms at ${digits(number(int8.snr_db), 1)} dB. High up and to the left harms much and gains little: the first to leave in FP32.` }),
      this.box, el('div', { class: 'row' }, this.search), this.table.element,
      sensitivity.left_out > 0 && el('p', { class: 'muted', text: `Not measured: ${sensitivity.left_out} of fewer operations.` }));
  }

  start() {
    this.filter();
    this.draw();
  }

  filter() {
    const text = this.search.value.trim().toLowerCase();
    this.table.show(this.sensitivity.groups.filter((row) => [row.name, ...row.nodes].some((name) => name.toLowerCase().includes(text))));
  }

  // Noise over signal against the time that INT8 gains.
  draw() {
    const kept = new Set((app.model.results.search || { kept_in_fp32: [] }).kept_in_fp32);
    const points = this.sensitivity.groups.map((row) => ({ row, x: number(row.fp32_lost_ms && row.fp32_lost_ms.median), y: number(row.int8 && row.int8.snr_db) }))
      .filter((point) => point.x !== null && point.y !== null && Number.isFinite(point.y));
    if (points.length === 0) {
      this.box.replaceChildren(el('p', { class: 'muted', text: 'Nothing to show.' }));
      return;
    }
    const width = Math.max(300, this.box.clientWidth || 900);
    const [height, left, right, top, bottom] = [360, 56, 16, 18, 40];
    const pad = ([low, high]) => [low - 0.06 * (high - low || 1), high + 0.06 * (high - low || 1)];
    const x = d3.scaleLinear(pad(d3.extent([0, ...points.map((p) => p.x)])), [left, width - right]);
    const y = d3.scaleLinear(pad(d3.extent(points, (p) => p.y)), [top, height - bottom]);
    const svg = d3.create('svg').attr('width', width).attr('height', height).attr('role', 'img').attr('aria-label', 'Harm and gain of each layer');
    svg.append('g').attr('class', 'axis').attr('transform', `translate(0,${height - bottom})`).call(d3.axisBottom(x).ticks(8));
    svg.append('g').attr('class', 'axis').attr('transform', `translate(${left},0)`).call(d3.axisLeft(y).ticks(6));
    svg.append('text').attr('class', 'caption').attr('x', width - right).attr('y', height - 6).attr('text-anchor', 'end').text('ms that INT8 gains');
    svg.append('text').attr('class', 'caption').attr('x', 4).attr('y', 11).text('SNR alone in INT8, dB: more harm above');
    svg.append('line').attr('x1', x(0)).attr('x2', x(0)).attr('y1', top).attr('y2', height - bottom).attr('stroke', css('--line'));
    const inFloat = ({ row }) => row.nodes.some((node) => kept.has(node));
    const dots = svg.append('g').selectAll('circle').data(points).join('circle').attr('class', 'point').attr('cx', (p) => x(p.x)).attr('cy', (p) => y(p.y)).attr('r', 5)
      .attr('fill', (p) => css(inFloat(p) ? '--fp32' : '--int8')).attr('fill-opacity', 0.6).attr('stroke', css('--card'));
    dots.nodes().forEach((dot) => {
      const { row } = dot.__data__;
      dot.style.cursor = 'pointer';
      dot.addEventListener('click', () => app.select(row.nodes[row.nodes.length - 1]));
      dot.addEventListener('mouseleave', () => tooltip.hide());
      dot.addEventListener('mousemove', (event) => tooltip.show(event, row.name, [`alone in INT8: ${digits(number(row.int8.snr_db), 1)} dB`, `INT8 gains ${signedMs(row.fp32_lost_ms.median)} ms (${gainText(row.fp32_lost_ms)})`, inFloat(dot.__data__) && 'the search leaves it in FP32']));
    });
    this.box.replaceChildren(svg.node());
  }
}

class SearchView {
  constructor(search) {
    const trials = [{ name: 'FP32', trial: search.fp32, groups: null }, ...search.trials.map((trial, i) => ({ name: i === 0 ? 'INT8' : `network ${i + 1}`, trial, groups: trial.groups_in_fp32.length })),
      { name: `found: ${search.variant}`, trial: search.found, groups: search.found.groups_in_fp32.length }];
    const of = (field) => ({ trial }) => number(trial.network[field]);
    this.rows = trials;
    this.table = new SortableTable([
      { title: 'network', kind: 'text', value: (row) => row.name },
      { title: 'groups in FP32', value: (row) => row.groups ?? Infinity, text: (row) => row.groups ?? 'all' },
      { title: 'ms', value: of('ms'), text: (row) => ms(of('ms')(row)) },
      { title: '95 % of it within', value: of('ms'), text: ({ trial }) => (number(trial.ms_low) === null ? '–' : `${ms(trial.ms_low)} to ${ms(trial.ms_high)}`), help: 'By the bootstrap over turns with the network in INT8' },
      { title: 'accuracy', value: (row) => of('top1')(row) ?? of('bits_per_byte')(row), text: (row) => accuracyText(row.trial.network) },
      { title: 'SNR, dB', value: of('snr_db'), text: (row) => digits(of('snr_db')(row), 1) },
      { title: 'within', kind: 'text', value: (row) => (row.trial.within ? 'yes' : 'no') },
    ], { key: (row) => row.name, label: 'Search' });
    const outcome = search.met ? `${shortened(search.variant, 60)} is within it at ${digits(search.speedup_kept_percent, 1)} % of INT8's speedup, with ${plural(search.kept_in_fp32.length, 'layer')} in FP32.` : 'Nothing that was tried is within it.';
    this.element = section('search', 'Search',
      el('p', { text: `Mixed precision under ${visible(search.budget)}, verified on ${visible(search.verified_on)}. ${outcome} ${plural(search.evaluations, 'network')} compiled, timed and verified in ${digits(search.seconds, 1)} s.` }),
      el('p', { class: 'muted', text: `Levels: ${visible(search.levels)}. Policy: ${visible(search.policy)}` }), this.table.element,
      search.kept_in_fp32.length > 0 && el('details', { open: search.kept_in_fp32.length <= 12 }, el('summary', { text: 'Layers in FP32' }), el('p', {}, search.kept_in_fp32.flatMap((node, i) => [i > 0 ? ' · ' : '', el('button', { type: 'button', class: 'link', text: shortened(node, 90), onclick: () => app.select(node, { reveal: false }) })]))));
  }

  start() {
    this.table.show(this.rows);
  }
}
