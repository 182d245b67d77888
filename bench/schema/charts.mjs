// Charts as people draw them with Vega-Lite, for the bench.
const rows = Array.from({ length: 40 }, (_, i) => ({
    month: `2024-${String((i % 12) + 1).padStart(2, "0")}-01`, city: ["Oslo", "Lima", "Pune"][i % 3],
    rain: (i * 37) % 90, mild: i % 2 === 0,
}));
const $schema = "https://vega.github.io/schema/vega-lite/v6.json";

export const charts = [
    {
        $schema, description: "A bar chart with a tooltip", width: 400, height: 200,
        data: { values: rows },
        mark: { type: "bar", tooltip: true, cornerRadius: 3 },
        encoding: {
            x: { field: "month", type: "temporal", timeUnit: "yearmonth", axis: { title: "Month", labelAngle: -45 } },
            y: { field: "rain", aggregate: "mean", type: "quantitative", scale: { zero: true, domain: [0, 100] } },
            color: { field: "city", type: "nominal", legend: { orient: "bottom", title: null } },
        },
        config: { view: { stroke: "transparent" }, axis: { grid: false, labelFontSize: 11 } },
    },
    {
        $schema, title: { text: "Rain by city", anchor: "start" },
        data: { url: "data/rain.csv", format: { type: "csv", parse: { month: "date" } } },
        transform: [
            { filter: "datum.rain > 10" },
            { calculate: "datum.rain * 25.4", as: "mm" },
            { aggregate: [{ op: "mean", field: "mm", as: "mean_mm" }], groupby: ["city", "month"] },
        ],
        layer: [
            { mark: { type: "line", interpolate: "monotone", strokeWidth: 2 },
              encoding: { x: { field: "month", type: "temporal" }, y: { field: "mean_mm", type: "quantitative" },
                          color: { field: "city", type: "nominal", scale: { scheme: "tableau10" } } } },
            { mark: { type: "point", filled: true, size: 40 },
              encoding: { x: { field: "month", type: "temporal" }, y: { field: "mean_mm", type: "quantitative" },
                          color: { field: "city", type: "nominal" }, opacity: { condition: { param: "pick", value: 1 }, value: 0.2 } },
              params: [{ name: "pick", select: { type: "point", fields: ["city"] }, bind: "legend" }] },
            { mark: { type: "rule", strokeDash: [4, 4] }, encoding: { y: { datum: 50 } } },
        ],
        resolve: { scale: { y: "shared" } },
    },
    {
        $schema, data: { values: rows },
        hconcat: [
            { mark: "area", encoding: { x: { field: "month", type: "ordinal" }, y: { field: "rain", type: "quantitative", stack: "normalize" },
                                        color: { field: "city", type: "nominal" } } },
            { facet: { field: "city", type: "nominal" }, columns: 2,
              spec: { mark: { type: "boxplot", extent: "min-max" }, encoding: { y: { field: "rain", type: "quantitative" } } } },
            { mark: "rect", encoding: { x: { field: "rain", bin: { maxbins: 20 }, type: "quantitative" },
                                        y: { field: "city", type: "nominal", sort: "-x" },
                                        color: { aggregate: "count", type: "quantitative" } } },
        ],
    },
];
