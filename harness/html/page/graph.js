'use strict';
// The network after each pass: boxes and edges that zoom and scroll, a strip with all of it, and the code beside.
// Only what is in view is in the document, so that 5,000 nodes cost no more than what one sees of them.

const COLOURINGS = [['place', 'precision'], ['time', 'time'], ['snr', 'SNR'], ['kernel', 'kernel'], ['change', 'change']];
const AGAINST = { added: '--good', changed: '--warn', renamed: '--accent' };  // The run before, where there is one.

class GraphView {
  constructor(model) {
    this.model = model;
    this.stepIndex = model.steps.length - 1;
    this.colouring = 'place';
    this.layouts = new Map();
    this.open = new Set();  // Boxes of many nodes that were opened.
    this.selected = null;
    this.matches = null;  // Names that the search found; null: nothing is searched for.
    this.showCode = false;
    this.measureBy(model.main);
    this.build();
  }

  // The graph is the one that was measured: what has no layer in it costs nothing.
  get isOfVariant() {
    return this.model.layers[this.variant]?.length > 0 && this.step === this.model.stepOf(this.model.variants[this.variant]);
  }

  get step() {
    return this.model.steps[this.stepIndex];
  }

  // --- What stands around the drawing.

  build() {
    const last = this.model.steps.length - 1;
    this.slider = el('input', { type: 'range', min: 0, max: last, value: last, 'aria-label': 'Pass', id: 'pass-slider',
                                oninput: () => this.go(Number(this.slider.value)) });
    this.stepButtons = el('span', { class: 'steps' }, this.model.steps.map((step, i) => el('button', {
      type: 'button', text: step.after === 'input' ? 'as read' : step.after, onclick: () => this.go(i),
    })));
    this.search = el('input', { type: 'search', placeholder: 'Search nodes, ops, kernels', 'aria-label': 'Search the graph', id: 'graph-search',
                                oninput: () => this.find(), onkeydown: (event) => event.key === 'Enter' && this.nextMatch(event.shiftKey ? -1 : 1) });
    this.found = el('span', { class: 'muted', id: 'graph-found' });
    this.changes = el('p', { class: 'muted', id: 'graph-changes' });
    this.legend = el('div', { class: 'legend' });
    this.closeButton = el('button', { type: 'button', hidden: true, text: 'close all', title: 'Modules that were opened become one box again', onclick: () => { this.open.clear(); this.fold(); } });
    this.svg = d3.create('svg').attr('tabindex', 0).attr('role', 'application').attr('aria-label', 'The graph; arrow keys walk along its edges');
    this.world = this.svg.append('g');
    this.edgeLayer = this.world.append('g');
    this.nodeLayer = this.world.append('g');
    this.strip = el('canvas', { title: 'All of the graph: click to go there' });
    this.code = el('div', { class: 'code', tabindex: '0', 'aria-label': 'Code', hidden: true });
    this.canvas = el('div', { class: 'canvas' }, this.svg.node(), this.strip, this.code);
    this.zoom = d3.zoom().scaleExtent([0.02, 2.5]).on('zoom', () => this.moved())
      .filter((first, second) => { const event = first instanceof Event ? first : d3.event || second; return event.type !== 'wheel' && !event.button; });
    this.svg.call(this.zoom).on('dblclick.zoom', null);
    this.svg.node().addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.svg.node().addEventListener('keydown', (event) => this.key(event));
    for (const [type, handler] of [['click', (node) => this.enterNode(node)], ['mousemove', (node, event) => this.hover(node, event)]]) {
      this.nodeLayer.node().addEventListener(type, (event) => {
        const group = event.target.closest('.node');
        if (group) handler(group.__data__.node, event);
      });
    }
    this.nodeLayer.node().addEventListener('mouseleave', () => tooltip.hide());
    this.nodeLayer.node().addEventListener('mouseout', () => tooltip.hide());
    const drag = (event) => event.buttons && this.goToStrip(event.offsetY);
    this.strip.addEventListener('pointerdown', drag);
    this.strip.addEventListener('pointermove', drag);
    const button = (text, title, action) => el('button', { type: 'button', text, title, 'aria-label': title, onclick: action });
    const variants = this.model.variants.map((variant, i) => [i, variant]).filter(([i]) => this.model.layers[i].length > 0);
    this.element = section('graph', 'Graph',
      el('div', { class: 'row' }, el('span', { class: 'muted', text: 'after' }), this.stepButtons, this.slider),
      el('div', { class: 'row' },
        el('span', { class: 'muted', text: 'colour by' }), choice(this.model.steps.some((step) => step.against) ? [...COLOURINGS, ['against', 'run before']] : COLOURINGS, this.colouring, (value) => { this.colouring = value; this.paint(); }, 'Colour by'),
        variants.length > 1 && el('label', {}, el('span', { class: 'muted', text: 'measured as ' }), el('select', { onchange: (event) => this.measureBy(Number(event.target.value)) },
          variants.map(([i, variant]) => el('option', { value: i, selected: i === this.model.main, text: shortened(variant.name, 60) })))),
        this.search, this.found, el('span', { class: 'spacer' }),
        el('span', { class: 'group' }, button('−', 'Zoom out (-)', () => this.scaleBy(1 / 1.4)), button('+', 'Zoom in (+)', () => this.scaleBy(1.4)),
           button('all', 'Show all of the graph (0)', () => this.fit()), button('top', 'The beginning, readable (Home)', () => this.home())),
        this.closeButton, (this.codeButton = el('button', { type: 'button', text: 'code', 'aria-pressed': 'false', id: 'code-button', onclick: () => this.toggleCode() }))),
      this.changes, this.canvas, this.legend,
      el('p', { class: 'muted', text: 'Drag or scroll to move, Ctrl and the wheel zoom, a click shows a node. Constants are left out.' }));
  }

  // The section is in the document, and has a size.
  start() {
    if (this.model.steps.length === 0) return;
    this.go(this.stepIndex);
    new ResizeObserver(() => this.moved()).observe(this.canvas);
  }

  measureBy(variantIndex) {
    this.variant = variantIndex;
    this.findLayer = this.model.layerFinder(variantIndex);
    this.slowestMs = d3.max(this.model.layers[variantIndex] || [], (layer) => layer.ms) || 1;
    this.paint();
  }

  // --- Which graph.

  layoutOf(index) {
    if (!this.layouts.has(index)) {
      const started = performance.now();
      this.layouts.set(index, layOut(folded(this.model.steps[index], this.open)));
      this.layoutMs = performance.now() - started;
    }
    return this.layouts.get(index);
  }

  // Which boxes are open has changed: `name` stays where it is, as far as it can.
  fold(name = null) {
    this.layouts.clear();
    this.go(this.stepIndex);
    const place = name && this.layout.nodes.find((one) => one.node.name === name);
    if (place) this.centre(place, d3.zoomTransform(this.svg.node()).k);
  }

  // The box of a node that is drawn, once those that hold it are open.
  unfold(name) {
    for (;;) {
      const box = this.layout.nodes.find(({ node }) => node.members && node.members.some((member) => member.name === name));
      if (!box) return;
      this.open.add(box.node.name);
      this.fold(box.node.name);
    }
  }

  // A box was clicked, or Enter pressed on it.
  enterNode(node) {
    if (!node.members) {
      app.select(node.name, { step: this.step });
      return;
    }
    this.open.add(node.name);
    this.fold(node.members[0].name);
  }

  go(index) {
    // What one looked at stays in the middle, or what became of it.
    const before = this.layout ? this.middleNode() : null;
    const transform = d3.zoomTransform(this.svg.node());
    this.stepIndex = Math.max(0, Math.min(this.model.steps.length - 1, index));
    this.layout = this.layoutOf(this.stepIndex);
    this.slider.value = this.stepIndex;
    this.closeButton.hidden = this.open.size === 0;
    [...this.stepButtons.children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === this.stepIndex)));
    this.describeChanges();
    this.find(false);
    this.drawCode();
    const place = before && this.counterpart(before);
    if (place) this.centre(place, transform.k);
    else this.home();
    this.paint();
  }

  middleNode() {
    const { y } = this.viewCentre();
    return this.layout.nodes.reduce((best, one) => (!best || Math.abs(one.y - y) < Math.abs(best.y - y) ? one : best), null)?.node;
  }

  counterpart(node) {
    const names = new Set([node.name, ...node.sources]);
    return this.layout.nodes.find((one) => one.node.name === node.name)
      || this.layout.nodes.find((one) => names.has(one.node.name) || one.node.sources.some((source) => names.has(source)));
  }

  describeChanges() {
    const { step, stepIndex } = this;
    const count = (change) => step.nodes.filter((node) => node.change === change).length;
    const parts = [`${plural(step.nodes.length, 'node')}, constants included`];
    if (stepIndex > 0) {
      parts.push(`against the graph before: ${count('new')} new, ${count('changed')} changed, ${step.removed.length} gone`);
      if (step.removed.length > 0) parts.push(`gone: ${step.removed.slice(0, 8).map((name) => shortened(name, 40)).join(', ')}${step.removed.length > 8 ? ', …' : ''}`);
    }
    if (step.against) {
      const removed = step.against.nodes.filter((one) => one.kind === 'removed').map((one) => shortened(one.before, 40));
      const counts = DIFFERENCES.map((kind) => [kind, step.against.count(kind)]).filter(([, number]) => number > 0).map(([kind, number]) => `${number} ${kind}`);
      parts.push(`against the run before: ${counts.join(', ') || 'the same'}${removed.length > 0 ? ` (${removed.slice(0, 8).join(', ')}${removed.length > 8 ? ', …' : ''} removed)` : ''}`);
    }
    this.changes.textContent = parts.join(' · ');
  }

  // --- Where one looks.

  size() {
    const { clientWidth, clientHeight } = this.svg.node();
    return { width: clientWidth || 800, height: clientHeight || 600 };
  }

  // What of the width open details leave.
  freeWidth() {
    const { width } = this.size();
    const drawer = document.getElementById('drawer').getBoundingClientRect();
    const free = drawer.width > 0 && drawer.top <= 0 ? drawer.left - this.svg.node().getBoundingClientRect().left : width;
    return Math.max(200, Math.min(width, free));
  }

  viewCentre() {
    const transform = d3.zoomTransform(this.svg.node());
    const { width, height } = this.size();
    return { x: transform.invertX(width / 2), y: transform.invertY(height / 2) };
  }

  look(x, y, k) {
    const { height } = this.size();
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(this.freeWidth() / 2 - x * k, height / 2 - y * k).scale(k));
  }

  centre(place, k = null) {
    this.look(place.x, place.y, Math.max(k || 0, k === null ? 0.85 : 0.05));
  }

  home() {
    const { width, height } = this.size();
    const { left, right, top } = this.layout.bounds;
    const k = Math.max(0.45, Math.min(1, (width - 30) / (right - left)));
    const x = right - left > width / k ? this.layout.nodes[0]?.x || 0 : (left + right) / 2;
    this.look(x, top - 16 / k + height / 2 / k, k);
  }

  fit() {
    const { width, height } = this.size();
    const { left, right, top, bottom } = this.layout.bounds;
    this.look((left + right) / 2, (top + bottom) / 2, Math.min(1.5, 0.96 * width / (right - left), 0.96 * height / (bottom - top)));
  }

  scaleBy(factor) {
    this.svg.call(this.zoom.scaleBy, factor);
  }

  // Scrolls like a page, and lets the page scroll on at both ends; with Ctrl it zooms.
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const point = [event.offsetX, event.offsetY];
      const factor = 2 ** (-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.004));
      const t = d3.zoomTransform(this.svg.node());
      const k = Math.min(2.5, Math.max(0.02, t.k * factor));
      const [x, y] = t.invert(point);
      this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(point[0] - x * k, point[1] - y * k).scale(k));
      return;
    }
    const t = d3.zoomTransform(this.svg.node());
    const unit = event.deltaMode === 1 ? 30 : 1;
    const [dx, dy] = event.shiftKey ? [event.deltaY * unit, 0] : [event.deltaX * unit, event.deltaY * unit];
    const { height } = this.size();
    const atTop = dy < 0 && t.invertY(0) <= this.layout.bounds.top - 40;
    const atBottom = dy > 0 && t.invertY(height) >= this.layout.bounds.bottom + 40;
    if (dx === 0 && (atTop || atBottom)) return;
    event.preventDefault();
    this.svg.call(this.zoom.transform, d3.zoomIdentity.translate(t.x - dx, t.y - dy).scale(t.k));
  }

  goToStrip(offset) {
    const { top, bottom } = this.layout.bounds;
    const t = d3.zoomTransform(this.svg.node());
    const y = top + (bottom - top) * (offset / this.strip.clientHeight);
    const near = this.layout.nodes.reduce((best, one) => (!best || Math.abs(one.y - y) < Math.abs(best.y - y) ? one : best), null);
    this.look(near ? near.x : 0, y, t.k);
  }

  // --- Drawing.

  moved() {
    if (!this.layout || this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  // The figure on a node. A node that became part of a layer has the time of the whole layer.
  figureOf(node) {
    if (node.members) {
      const layers = this.layersIn(node);
      return this.colouring === 'snr' || layers.length === 0 ? '' : `${ms(d3.sum(layers, (layer) => layer.ms))} ms`;
    }
    const layer = this.findLayer(node);
    if (!layer) return '';
    if (this.colouring === 'snr') return layer.snr === null ? '' : `${digits(layer.snr, 0)} dB`;
    return `${layer.name === node.name ? '' : 'of '}${ms(layer.ms)} ms`;
  }

  colourOf(node) {
    // A module of many nodes has the colour of its slowest layer.
    if (node.members) {
      if (this.colouring === 'against') return this.colourOf(node.members.find((one) => this.step.against?.byName.has(one.name)) || node.members[0]);
      const slowest = this.layersIn(node).reduce((best, layer) => (best && best.ms > layer.ms ? best : layer), null);
      const member = slowest ? node.members.find((one) => one.name === slowest.name) || node.members.find((one) => this.findLayer(one) === slowest) : node.members.find((one) => one.change) || node.members[0];
      return this.colourOf(member);
    }
    const layer = this.findLayer(node);
    switch (this.colouring) {
      case 'place': {
        const own = layer && layer.name === node.name && layer.op === node.op;
        if (node.op === '' || (!own && this.isOfVariant)) return css('--none');
        return css(PLACE_COLORS[own ? layer.place : placeOf(node.op, '', node.name)]);
      }
      case 'time': return layer ? d3.interpolateRgb(css('--heat-0'), css('--heat-1'))(Math.sqrt(layer.ms / this.slowestMs)) : css('--none');
      case 'snr': return layer && layer.snr !== null ? snrColour(layer.snr) : css('--none');
      case 'kernel': return layer ? this.kernelColour(layer.kernel) : css('--none');
      case 'against': return css(AGAINST[this.step.against?.byName.get(node.name)?.kind] || '--none');
      default: return { new: css('--good'), changed: css('--warn') }[node.change] || css('--none');
    }
  }

  layersIn(box) {
    return [...new Set(box.members.map((member) => this.findLayer(member)).filter(Boolean))];
  }

  kernelColour(kernel) {
    if (!this.kernels) {
      const names = [...new Set(this.model.layers.flat().map((layer) => layer.kernel))];
      this.kernels = d3.scaleOrdinal([...d3.schemeTableau10, ...d3.schemeSet3]).domain(names);
    }
    return this.kernels(kernel);
  }

  // Colours and what depends on them are new.
  paint() {
    if (!this.layout) return;
    for (const one of this.layout.nodes) {
      one.colour = this.colourOf(one.node);
      one.figure = this.figureOf(one.node);
    }
    this.nodeLayer.selectAll('.node').remove();
    this.drawLegend();
    this.draw();
  }

  draw() {
    const t = d3.zoomTransform(this.svg.node());
    this.world.attr('transform', t);
    const { width, height } = this.size();
    const view = { left: t.invertX(-80), right: t.invertX(width + 80), top: t.invertY(-80), bottom: t.invertY(height + 80) };
    const overview = t.k < 0.33;
    // From afar a node is one box, so that all of 5,000 are quick to draw.
    if (overview !== this.overview) this.nodeLayer.selectAll('.node').remove();
    this.overview = overview;
    const inView = this.layout.nodes.filter(({ x, y }) => x + NODE_WIDTH / 2 > view.left && x - NODE_WIDTH / 2 < view.right && y + NODE_HEIGHT > view.top && y - NODE_HEIGHT < view.bottom);
    const line = d3.line().x((p) => p.x).y((p) => p.y).curve(d3.curveBasis);
    const edges = this.layout.edges.filter(({ points }) => {
      const [a, b] = [points[0].y, points[points.length - 1].y];
      return Math.max(a, b) > view.top && Math.min(a, b) < view.bottom;
    });
    const name = (index) => this.layout.nodes[index].node.name;
    this.edgeLayer.selectAll('path').data(edges, (edge) => `${edge.from}-${edge.to}`).join('path')
      .attr('class', (edge) => `edge${edge.far ? ' far' : ''}${this.selected && (name(edge.from) === this.selected || name(edge.to) === this.selected) ? ' lit' : ''}`)
      .attr('d', (edge) => line(edge.points));
    this.nodeLayer.selectAll('.node').data(inView, (one) => one.node.name).join((enter) => this.enter(enter))
      .attr('transform', ({ x, y }) => `translate(${x - NODE_WIDTH / 2},${y - NODE_HEIGHT / 2})`)
      .attr('class', ({ node }) => ['node', this.stepIndex > 0 ? node.change : '', node.name === this.selected ? 'selected' : '', this.matches && !this.matches.has(node.name) ? 'dim' : ''].join(' '));
    this.drawStrip(view);
  }

  enter(enter) {
    const group = enter.append('g');
    if (this.overview) {
      group.append('rect').attr('class', 'box far').attr('width', NODE_WIDTH).attr('height', NODE_HEIGHT).style('fill', (one) => one.colour);
      return group;
    }
    group.append('rect').attr('class', 'box').attr('width', NODE_WIDTH).attr('height', NODE_HEIGHT).attr('rx', 7);
    group.append('rect').attr('class', 'tint').attr('width', NODE_WIDTH - 2).attr('height', NODE_HEIGHT - 2).attr('x', 1).attr('y', 1).attr('rx', 6)
      .attr('fill', (one) => one.colour).attr('fill-opacity', 0.22);
    group.append('rect').attr('class', 'tint').attr('width', 7).attr('height', NODE_HEIGHT - 2).attr('x', 1).attr('y', 1).attr('rx', 3).attr('fill', (one) => one.colour);
    group.append('text').attr('class', 'op').attr('x', 15).attr('y', 18).text(({ node }) => shortened(node.op || node.kind, 18));
    group.append('text').attr('class', 'figure').attr('x', NODE_WIDTH - 8).attr('y', 18).text((one) => one.figure);
    group.append('text').attr('class', 'sub').attr('x', 15).attr('y', 34).text(({ node }) => shortened(node.title || node.name, 30));
    return group;
  }

  drawStrip(view) {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [54, this.strip.clientHeight];
    if (this.strip.height !== Math.round(height * ratio)) {
      this.strip.width = width * ratio;
      this.strip.height = Math.round(height * ratio);
    }
    const context = this.strip.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const { left, right, top, bottom } = this.layout.bounds;
    const y = d3.scaleLinear([top, bottom], [3, height - 3]);
    const x = d3.scaleLinear([left, right], [5, width - 5]);
    const w = Math.max(3, x(NODE_WIDTH) - x(0));
    const h = Math.max(1, y(NODE_HEIGHT) - y(0));
    for (const one of this.layout.nodes) {
      context.globalAlpha = this.matches && !this.matches.has(one.node.name) ? 0.15 : 1;
      context.fillStyle = one.node.name === this.selected ? css('--accent') : one.colour;
      context.fillRect(Math.min(width - w, x(one.x) - w / 2), y(one.y) - h / 2, w, h);
    }
    context.globalAlpha = 0.18;
    context.fillStyle = css('--accent');
    const [from, to] = [Math.max(0, y(view.top)), Math.min(height, y(view.bottom))];
    context.fillRect(0, from, width, Math.max(4, to - from));
    context.globalAlpha = 1;
  }

  drawLegend() {
    const swatch = (colour, text, title) => {
      const dot = el('span', { class: 'dot' });
      dot.style.background = colour;
      return el('span', { title }, dot, text);
    };
    const scale = (low, high, colour) => [swatch(colour(0), low), ...[0.25, 0.5, 0.75].map((part) => swatch(colour(part), '')), swatch(colour(1), high)];
    const present = new Set(this.layout.nodes.map((one) => one.colour));
    const legends = {
      place: () => PLACES.filter((place) => present.has(css(PLACE_COLORS[place]))).map((place) => swatch(css(PLACE_COLORS[place]), place, PLACE_HELP[place])),
      time: () => scale('0 ms', `${ms(this.slowestMs)} ms`, (part) => d3.interpolateRgb(css('--heat-0'), css('--heat-1'))(Math.sqrt(part))),
      snr: () => scale(`${SNR_RANGE[0]} dB and less`, `${SNR_RANGE[1]} dB and more`, (part) => snrColour(SNR_RANGE[0] + part * (SNR_RANGE[1] - SNR_RANGE[0]))),
      kernel: () => [...new Set(this.layout.nodes.map((one) => this.findLayer(one.node)?.kernel).filter(Boolean))].map((kernel) => swatch(this.kernelColour(kernel), shortened(kernel, 40))),
      change: () => [swatch(css('--good'), 'new'), swatch(css('--warn'), 'changed')],
      against: () => Object.entries(AGAINST).map(([kind, colour]) => swatch(css(colour), kind)),
    };
    const outlines = this.stepIndex > 0 && this.colouring !== 'change' ? [el('span', { text: 'outlined: solid green is new, dashed amber changed by this pass' })] : [];
    this.legend.replaceChildren(...legends[this.colouring](), swatch(css('--none'), this.colouring === 'against' ? (this.step.against ? 'as in the run before' : 'the run before has no such graph') : this.isOfVariant ? 'costs nothing: a view, or no op' : 'not measured, or no op'), ...outlines);
  }

  hover(node, event) {
    if (node.members) {
      tooltip.show(event, node.title, [`${plural(node.members.length, 'node')}; a click opens them`, this.figureOf(node)]);
      return;
    }
    const layer = this.findLayer(node);
    tooltip.show(event, node.name, [node.target, node.type, layer && `${ms(layer.ms)} ms as ${layer.label} in ${layer.variant}: ${layer.kernel}`,
                                    layer && layer.snr !== null && `SNR ${digits(layer.snr, 1)} dB`, node.change && this.stepIndex > 0 && `${node.change} after ${this.step.after}`]);
  }

  // --- Code.

  toggleCode() {
    this.showCode = !this.showCode;
    this.codeButton.setAttribute('aria-pressed', String(this.showCode));
    this.code.hidden = !this.showCode;
    this.canvas.classList.toggle('with-code', this.showCode);
    this.drawCode();
    this.draw();
  }

  drawCode() {
    if (!this.showCode) return;
    this.code.replaceChildren(...this.step.nodes.map((node) => {
      const [code, type] = codeOf(node);
      const line = el('div', { class: [this.stepIndex > 0 ? node.change : '', node.name === this.selected ? 'selected' : ''].join(' ') },
                      shortened(code, 400), el('i', { text: shortened(type, 400) }));
      line.addEventListener('click', () => app.select(node.name, { step: this.step, reveal: true }));
      return line;
    }));
  }

  // --- Search.

  find(jump = true) {
    const text = this.search.value.trim().toLowerCase();
    if (text === '') {
      this.matches = null;
      this.found.textContent = '';
    } else {
      const fits = (node) => (node.members ? node.members.some(fits) : [node.name, node.target, node.type, this.findLayer(node)?.kernel || ''].some((part) => part.toLowerCase().includes(text)));
      this.matchList = this.layout.nodes.filter((one) => fits(one.node));
      this.matches = new Set(this.matchList.map((one) => one.node.name));
      this.matchIndex = -1;
      this.found.textContent = `${this.matchList.length} found${this.matchList.length > 1 ? '; Enter: the next' : ''}`;
      if (jump && this.matchList.length > 0) this.nextMatch(1);
    }
    this.moved();
  }

  nextMatch(by) {
    if (!this.matches || this.matchList.length === 0) return;
    this.matchIndex = (this.matchIndex + by + this.matchList.length) % this.matchList.length;
    this.found.textContent = `${this.matchIndex + 1} of ${this.matchList.length}`;
    this.selected = this.matchList[this.matchIndex].node.name;
    this.centre(this.matchList[this.matchIndex], Math.max(0.7, d3.zoomTransform(this.svg.node()).k));
  }

  // --- Selection, and the keyboard.

  // A node of `step`; without one, of the last graph that has it.
  select(name, step) {
    const index = step ? this.model.steps.indexOf(step) : d3.max(this.model.steps.map((one, i) => (one.byName.has(name) ? i : -1)));
    this.selected = name;
    if (index === undefined || index < 0) return;
    if (index !== this.stepIndex) this.go(index);
    this.unfold(name);
    const place = this.layout.nodes.find((one) => one.node.name === name);
    if (place && !this.isInView(place)) this.centre(place, Math.max(0.7, d3.zoomTransform(this.svg.node()).k));
    if (this.showCode) {
      this.drawCode();
      const line = this.code.querySelector('.selected');
      if (line) this.code.scrollTop = line.offsetTop - this.code.clientHeight / 2;
    }
    this.moved();
  }

  isInView({ x, y }) {
    const t = d3.zoomTransform(this.svg.node());
    const [width, { height }] = [this.freeWidth(), this.size()];
    return t.k > 0.33 && t.invertX(20) < x && x < t.invertX(width - 20) && t.invertY(20) < y && y < t.invertY(height - 20);
  }

  key(event) {
    const { layout } = this;
    if (!layout) return;
    const move = { '+': () => this.scaleBy(1.3), '=': () => this.scaleBy(1.3), '-': () => this.scaleBy(1 / 1.3), 0: () => this.fit(), Home: () => this.home() }[event.key];
    if (move) {
      event.preventDefault();
      move();
      return;
    }
    if (!event.key.startsWith('Arrow') && event.key !== 'Enter') return;
    event.preventDefault();
    const here = layout.nodes.find((one) => one.node.name === this.selected);
    if (event.key === 'Enter') {
      if (here) this.enterNode(here.node);
      return;
    }
    const next = here ? this.neighbour(here, event.key) : layout.nodes[0];
    if (!next) return;
    this.selected = next.node.name;
    if (!this.isInView(next)) this.centre(next, Math.max(0.5, d3.zoomTransform(this.svg.node()).k));
    this.moved();
    // Open details follow; closed ones stay closed.
    if (!document.getElementById('drawer').hidden && !next.node.members) details.show(this.model, next.node.name, this.step);
  }

  neighbour(here, key) {
    const { nodes, edges } = this.layout;
    const index = nodes.indexOf(here);
    const nearest = (list) => list.reduce((best, one) => (!best || Math.hypot(one.x - here.x, one.y - here.y) < Math.hypot(best.x - here.x, best.y - here.y) ? one : best), null);
    if (key === 'ArrowDown') return nearest(edges.filter((edge) => edge.from === index).map((edge) => nodes[edge.to]));
    if (key === 'ArrowUp') return nearest(edges.filter((edge) => edge.to === index).map((edge) => nodes[edge.from]));
    const side = key === 'ArrowRight' ? 1 : -1;
    return nearest(nodes.filter((one) => side * (one.x - here.x) > NODE_WIDTH / 2 && Math.abs(one.y - here.y) < 3 * NODE_HEIGHT));
  }
}

const SNR_RANGE = [15, 60];

function snrColour(snr) {
  const part = Math.max(0, Math.min(1, (snr - SNR_RANGE[0]) / (SNR_RANGE[1] - SNR_RANGE[0])));
  return d3.interpolateRdYlGn(part);
}
