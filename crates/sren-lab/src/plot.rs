//! Line charts as SVG, in the reader's light or dark colour scheme. A chart of many lines becomes
//! small multiples: a panel for each solid line with its dashed one, on common axes.

use maud::{Markup, PreEscaped, html};

/// Width and height of a chart, in its own units.
const SIZE: [f64; 2] = [460.0, 300.0];
/// Left, top, right and bottom of the area that is drawn in.
const AREA: [f64; 4] = [48.0, 66.0, 446.0, 254.0];
/// Where the legend begins, how far apart its lines are, and how many there is room for.
const LEGEND: f64 = 38.0;
const LEGEND_LINE: f64 = 15.0;
const LEGEND_LINES: f64 = 2.0;
/// Most solid lines of one chart: more become panels,
const MOST_LINES: usize = 4;
/// two beside each other, with so much room for each.
const PANEL: [f64; 2] = [230.0, 132.0];
/// Left, top, right and bottom of the area of a panel.
const PANEL_AREA: [f64; 4] = [40.0, 24.0, 212.0, 110.0];
/// Room above the panels for the title, and below them.
const PANEL_HEAD: f64 = 30.0;
const PANEL_FOOT: f64 = 24.0;
/// About how wide a letter of a legend is.
const LETTER: f64 = 7.2;
/// Colours that differ for most eyes, on light and on dark.
const COLOURS: [&str; 6] = ["#3b82d6", "#e0782f", "#2f9e78", "#b65fcf", "#c0a02a", "#d64c6c"];

/// Colours of a chart. A page with charts has this once; a chart in a file of its own includes it.
pub const CHART_STYLE: &str = ".chart{--ink:#1c2024;--soft:#6b7280;--line:#d9dde3;--paper:#fff;\
font:12px system-ui,sans-serif;background:var(--paper)}\
@media(prefers-color-scheme:dark){.chart{--ink:#e8eaed;--soft:#9aa3ae;--line:#383e46;\
--paper:#15181c}}.chart text{fill:var(--soft)}.chart .title{fill:var(--ink);font-size:14px;\
font-weight:600}.chart .grid{stroke:var(--line)}";

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// x and y, ascending in x.
    pub points: Vec<[f64; 2]>,
    /// Whether it is dashed.
    pub dashed: bool,
}

/// Lines over a common axis.
#[derive(Debug, Clone, PartialEq)]
pub struct LineChart {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// Whether y is logarithmic; zeros are then at the bottom.
    pub log_y: bool,
    /// Range of y, or that of the values.
    pub y_range: Option<[f64; 2]>,
    /// The lines.
    pub series: Vec<Series>,
}

impl LineChart {
    /// The chart for a page that has [`CHART_STYLE`].
    pub fn svg(&self) -> String {
        self.draw(false).into_string()
    }

    /// The chart as a file of its own.
    pub fn svg_file(&self) -> String {
        self.draw(true).into_string()
    }

    /// The chart, with its own style and background if it stands `alone`. Elements are closed, as
    /// XML wants it.
    pub(crate) fn draw(&self, alone: bool) -> Markup {
        let (size, content) = match self.series.iter().filter(|line| !line.dashed).count() {
            0..=MOST_LINES => self.one_chart(),
            panels => self.panels(panels),
        };
        let view = format!("0 0 {} {}", size[0], size[1]);
        html! {
            svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox=(view) role="img"
                aria-label=(self.title) {
                @if alone {
                    style { (PreEscaped(CHART_STYLE)) }
                    rect width="100%" height="100%" fill="var(--paper)" {}
                }
                (content)
            }
        }
    }

    /// All lines in one chart: its size and content.
    fn one_chart(&self) -> ([f64; 2], Markup) {
        let legend = self.legend();
        // A longer legend moves the rest down.
        let last = legend.last().map_or(LEGEND, |place| place[1]);
        let down = (last - LEGEND - (LEGEND_LINES - 1.0) * LEGEND_LINE).max(0.0);
        let area @ [left, _, right, bottom] = [AREA[0], AREA[1] + down, AREA[2], AREA[3] + down];
        let axes @ [x_axis, y_axis] = &self.axes(area);
        let lines = self.series.iter().zip(&legend).enumerate();
        let content = html! {
            text class="title" x=(left) y="20" { (self.title) }
            (grid(axes, area, 1))
            text x=(tenth(0.5 * (left + right))) y=(tenth(bottom + 38.0))
                text-anchor="middle" { (self.x_label) }
            text x=(right) y="20" text-anchor="end" { (self.y_label) }
            @for (index, (series, [x, y])) in lines {
                @let (colour, dash) = (self.colour(index), dash(series));
                (line(series, colour, x_axis, y_axis))
                line x1=(tenth(*x)) x2=(tenth(x + 18.0)) y1=(tenth(y - 4.0)) y2=(tenth(y - 4.0))
                    stroke=(colour) stroke-width="2.5" stroke-dasharray=[dash] {}
                text x=(tenth(x + 23.0)) y=(tenth(*y)) { (series.name) }
            }
        };
        ([SIZE[0], SIZE[1] + down], content)
    }

    /// A panel for each of the solid lines: size and content.
    fn panels(&self, panels: usize) -> ([f64; 2], Markup) {
        let axes @ [x_axis, y_axis] = &self.axes(PANEL_AREA);
        let height = PANEL_HEAD + panels.div_ceil(2) as f64 * PANEL[1] + PANEL_FOOT;
        let pair =
            |panel: usize| [panel, panels + panel].into_iter().filter_map(|i| self.series.get(i));
        let compared = self.series.get(panels).map(|series| series.name.split(' ').next());
        let note = match compared.flatten() {
            Some(name) => format!("{}; dashed: {name}", self.y_label),
            None => self.y_label.clone(),
        };
        let content = html! {
            text class="title" x="8" y="18" { (self.title) }
            text x=(SIZE[0] - 8.0) y="18" text-anchor="end" { (note) }
            @for panel in 0..panels {
                @let place = [PANEL[0] * (panel % 2) as f64, PANEL_HEAD + PANEL[1] * (panel / 2) as f64];
                g transform=(format!("translate({} {})", place[0], place[1])) {
                    text class="title" style="font-size:12px" x=(PANEL_AREA[0]) y="16" {
                        (self.series[panel].name)
                    }
                    (grid(axes, PANEL_AREA, 2))
                    @for series in pair(panel) {
                        (line(series, self.colour(panel), x_axis, y_axis))
                    }
                }
            }
            text x=(tenth(0.5 * SIZE[0])) y=(tenth(height - 8.0)) text-anchor="middle" {
                (self.x_label)
            }
        };
        ([SIZE[0], height], content)
    }

    /// The axes of x and y for lines in `area`.
    fn axes(&self, [left, top, right, bottom]: [f64; 4]) -> [Axis; 2] {
        let y_axis = match self.log_y {
            true => Axis::logarithmic(self.values(1), bottom, top),
            false => {
                let values = self.y_range.map_or_else(|| self.values(1), |range| range.to_vec());
                Axis::linear(values, bottom, top)
            }
        };
        [Axis::linear(self.values(0), left, right), y_axis]
    }

    /// The colour of line number `index`; a dashed one has that of the solid one it stands beside.
    fn colour(&self, index: usize) -> &'static str {
        let solid = self.series.iter().filter(|series| !series.dashed).count().max(1);
        let dashed = self.series.get(index).is_some_and(|series| series.dashed);
        COLOURS[if dashed { index.saturating_sub(solid) } else { index } % COLOURS.len()]
    }

    /// Where the names of the lines stand.
    fn legend(&self) -> Vec<[f64; 2]> {
        let [mut x, mut y] = [AREA[0], LEGEND];
        let place = |series: &Series| {
            let room = 36.0 + LETTER * series.name.chars().count() as f64;
            if x + room > AREA[2] && x > AREA[0] {
                (x, y) = (AREA[0], y + LEGEND_LINE);
            }
            x += room;
            [x - room, y]
        };
        self.series.iter().map(place).collect()
    }

    fn values(&self, axis: usize) -> Vec<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        points.map(|point| point[axis]).filter(|value| value.is_finite()).collect()
    }
}

fn dash(series: &Series) -> Option<&'static str> {
    series.dashed.then_some("5 4")
}

/// Grid lines and the numbers of every `each`th.
fn grid([x_axis, y_axis]: &[Axis; 2], [left, _, right, bottom]: [f64; 4], each: usize) -> Markup {
    html! {
        @for (value, label) in y_axis.ticks.iter().step_by(each) {
            @let y = y_axis.place(*value);
            line class="grid" x1=(left) x2=(right) y1=(tenth(y)) y2=(tenth(y)) {}
            text x=(tenth(left - 6.0)) y=(tenth(y + 4.0)) text-anchor="end" { (label) }
        }
        @for (value, label) in x_axis.ticks.iter().step_by(each) {
            @let x = tenth(x_axis.place(*value));
            line class="grid" x1=(x) x2=(x) y1=(bottom) y2=(tenth(bottom + 4.0)) {}
            text x=(x) y=(tenth(bottom + 18.0)) text-anchor="middle" { (label) }
        }
    }
}

/// One line, a dot if it has one point.
fn line(series: &Series, colour: &str, x_axis: &Axis, y_axis: &Axis) -> Markup {
    let place = |[a, b]: &[f64; 2]| [tenth(x_axis.place(*a)), tenth(y_axis.place(*b))];
    let points: Vec<[String; 2]> = series.points.iter().map(place).collect();
    let path = points.iter().map(|point| point.join(",")).collect::<Vec<_>>().join(" ");
    html! {
        polyline points=(path) fill="none" stroke=(colour) stroke-width="2"
            stroke-linejoin="round" stroke-dasharray=[dash(series)] {}
        @if let [[a, b]] = &points[..] {
            circle cx=(a) cy=(b) r="3" fill=(colour) {}
        }
    }
}

/// Maps values to coordinates.
struct Axis {
    range: [f64; 2],
    places: [f64; 2],
    logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    fn linear(values: Vec<f64>, from: f64, to: f64) -> Self {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min).min(f64::MAX);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max).max(f64::MIN);
        let [least, most] = match most - least {
            d if d > 0.0 && d.is_finite() => [least, most],
            _ if values.is_empty() => [0.0, 1.0],
            _ => [least - 0.5, most + 0.5],
        };
        let rough = (most - least) / 6.0;
        let power = 10f64.powf(rough.log10().floor());
        let nice = [1.0, 2.0, 2.5, 5.0, 10.0].map(|n| n * power);
        let mut step = nice.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
        // Angles.
        if most - least > 180.0 {
            step = if most - least > 300.0 { 60.0 } else { 45.0 };
        }
        // Whole numbers, such as epochs, have nothing in between.
        if values.iter().all(|value| value.fract() == 0.0) {
            step = step.max(1.0).ceil();
        }
        let digits = (-(step.log10() + 1e-9).floor()).max(0.0) as usize;
        let digits = digits + usize::from((step / 2.5).log10().fract() == 0.0 && step < 10.0);
        let first = (least / step - 1e-9).ceil() as i64;
        let last = (most / step + 1e-9).floor() as i64;
        let tick = |i: i64| (i as f64 * step, format!("{:.digits$}", i as f64 * step));
        let ticks = (first..=last).map(tick).collect();
        Self { range: [least, most], places: [from, to], logarithmic: false, ticks }
    }

    fn logarithmic(values: Vec<f64>, from: f64, to: f64) -> Self {
        let positive = || values.iter().copied().filter(|value| *value > 0.0);
        let least = positive().fold(f64::INFINITY, f64::min).clamp(1e-12, 0.1);
        let most = positive().fold(f64::NEG_INFINITY, f64::max).max(1.0);
        let (low, high) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let label = |value: f64| match value {
            0.9e-3.. => format!("{}", (value * 1e6).round() / 1e6),
            _ => format!("{value:.0e}"),
        };
        // 1 and 3 of each decade, the range no wider than it must be.
        let mut ladder: Vec<f64> =
            (low..=high).flat_map(|p| [1.0, 3.0].map(|n| n * 10f64.powi(p))).collect();
        while ladder.len() > 2 && ladder[1] <= least {
            ladder.remove(0);
        }
        while ladder.len() > 2 && ladder[ladder.len() - 2] >= most {
            ladder.pop();
        }
        let range = [ladder[0], ladder[ladder.len() - 1]];
        if high - low > 3 {
            ladder.retain(|value| (value.log10() - value.log10().round()).abs() < 1e-9);
        }
        let ticks = ladder.into_iter().map(|value| (value, label(value))).collect();
        Self { range, places: [from, to], logarithmic: true, ticks }
    }

    fn place(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        let part = match self.logarithmic {
            true => (value.max(low) / low).ln() / (high / low).ln(),
            false => (value - low) / (high - low),
        };
        self.places[0] + part.clamp(0.0, 1.0) * (self.places[1] - self.places[0])
    }
}

/// A coordinate to a tenth.
fn tenth(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chart of `count` solid lines and as many dashed ones.
    fn chart(count: usize, dashed: bool) -> String {
        let line = |prefix: &str, index: usize, dashed: bool| Series {
            name: format!("{prefix}layer with a long name {index}"),
            points: vec![[0.0, 1.0], [1.0, 2.0]],
            dashed,
        };
        let mut series: Vec<Series> = (0..count).map(|i| line("", i, false)).collect();
        if dashed {
            series.extend((0..count).map(|i| line("CNN ", i, true)));
        }
        let chart = LineChart {
            title: "title".into(),
            x_label: "x".into(),
            y_label: "y".into(),
            log_y: false,
            y_range: None,
            series,
        };
        chart.svg()
    }

    /// Its height, the lowest name in its legend, the highest grid line.
    fn measures(svg: &str) -> [f64; 3] {
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        let height = svg.split("viewBox=\"0 0 460 ").nth(1).map(number).unwrap();
        let names = svg.split("<text ").filter(|text| text.contains("long name"));
        let lowest = names.map(|text| number(text.split(" y=\"").nth(1).unwrap()));
        let lines = svg.split("<line class=\"grid\" ").skip(1);
        let highest = lines.map(|text| number(text.split("y1=\"").nth(1).unwrap()));
        [height, lowest.fold(0.0, f64::max), highest.fold(f64::INFINITY, f64::min)]
    }

    #[test]
    fn names_are_escaped_and_elements_are_closed() {
        let chart = LineChart {
            title: "a < b & \"c\"".into(),
            x_label: "<x>".into(),
            y_label: String::new(),
            log_y: true,
            y_range: None,
            series: vec![Series { name: "<b>".into(), points: vec![[0.0, 1.0]], dashed: true }],
        };
        let svg = chart.svg_file();
        assert!(svg.contains("a &lt; b &amp; &quot;c&quot;") && svg.contains("&lt;b&gt;"), "{svg}");
        assert!(!svg.contains("<b>") && !svg.contains("<x>"), "{svg}");
        assert_eq!(svg.matches('<').count(), 2 * svg.matches("</").count(), "{svg}");
    }

    #[test]
    fn a_long_legend_moves_the_lines_down() {
        let [short, long] = [measures(&chart(1, false)), measures(&chart(4, true))];
        assert_eq!(short[0], SIZE[1]);
        assert!(long[0] > short[0]);
        for [_, lowest, highest] in [short, long] {
            assert!(lowest < highest, "{lowest} {highest}");
        }
    }

    #[test]
    fn many_lines_become_panels_of_their_own() {
        let svg = chart(5, true);
        assert_eq!(svg.matches("<g transform").count(), 5);
        for panel in svg.split("<g transform").skip(1) {
            assert_eq!(panel.matches("<polyline").count(), 2, "{panel}");
            assert_eq!(panel.matches("long name").count(), 1, "{panel}");
        }
        assert!(svg.contains("y; dashed: CNN"), "{svg}");
        assert_eq!(chart(5, false).matches("<polyline").count(), 5);
    }
}
