// SPDX-License-Identifier: Apache-2.0
#include "cli/page.h"

#include <fmt/format.h>

#include "base/text.h"

namespace syntra {
namespace {

// In the dark scheme the pictures keep their colours, but for paper, grid, text and black lines.
constexpr char kStyle[] = R"(:root { color-scheme: light dark; }
body { font-family: sans-serif; line-height: 1.4; margin: 2em auto; padding: 0 1em; max-width: 72em; }
h1 { font-size: 1.6em; overflow-wrap: anywhere; }
h2 { margin-top: 2em; }
.wide { margin: 1em 0; overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.3em 0.8em; border-bottom: 1px solid #cccccc; vertical-align: top; }
.numbers :is(th, td) { text-align: right; white-space: nowrap; }
.numbers :first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 14em; }
.text :is(th, td) { text-align: left; overflow-wrap: break-word; min-width: 5em; max-width: 30em; }
dt { font-weight: bold; margin-top: 0.8em; }
dd { overflow-wrap: anywhere; }
svg { display: block; }
pre { background: #f4f4f4; padding: 1em; overflow-x: auto; }
@media (prefers-color-scheme: dark) {
  body { background: #181818; color: #dddddd; }
  th, td { border-color: #4a4a4a; }
  pre { background: #262626; }
  svg .paper { fill: #181818; }
  svg .grid { stroke: #4a4a4a; }
  svg text { fill: #dddddd; }
  svg [stroke="#000000"] { stroke: #ffffff; }
  svg [fill="#000000"] { fill: #ffffff; }
}
@media print {
  body { margin: 0; max-width: none; background: white; color: black; }
  h2, h3 { break-after: avoid; }
  tr, svg { break-inside: avoid; }
  svg { max-width: 100%; height: auto; }
  pre { white-space: pre-wrap; }
}
)";

std::string HtmlRow(const TableRow& row, const char* tag) {
  std::string text = "<tr>";
  for (const std::string& cell : row) text += HtmlElement(tag, cell);
  return text + "</tr>\n";
}

// Keys scroll what has the focus.
std::string Scrolled(const std::string& html) {
  return "<div class=\"wide\" tabindex=\"0\">\n" + html + "</div>\n";
}

}  // namespace

std::string HtmlPage(const std::string& title, const std::string& body) {
  return fmt::format(
      R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{0}</title>
<style>
{1}</style>
</head>
<body>
<h1>{0}</h1>
{2}</body>
</html>
)",
      XmlText(Printable(title)), kStyle, body);
}

std::string HtmlTable(std::span<const TableRow> rows, Cells cells) {
  std::string text =
      fmt::format("<table class=\"{}\">\n{}", cells == Cells::kNumbers ? "numbers" : "text",
                  HtmlRow(rows.front(), "th"));
  for (const TableRow& row : rows.subspan(1)) text += HtmlRow(row, "td");
  return Scrolled(text + "</table>\n");
}

std::string HtmlHeading(const std::string& text) { return HtmlElement("h2", text) + "\n"; }

std::string HtmlPicture(const std::string& svg) { return Scrolled(svg); }

std::string HtmlElement(const char* tag, const std::string& text) {
  return fmt::format("<{0}>{1}</{0}>", tag, XmlText(Printable(text)));
}

}  // namespace syntra
