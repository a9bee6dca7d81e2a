// SPDX-License-Identifier: Apache-2.0
// Pages for browsers: HTML that needs nothing but itself, neither network nor scripts. They follow
// the reader's light or dark scheme, narrow windows and paper.
#pragma once

#include <span>
#include <string>

#include "cli/text_table.h"

namespace syntra {

// `body` is HTML; `title` is not.
std::string HtmlPage(const std::string& title, const std::string& body);
// The first row holds the names of the columns. Cells are text from anywhere. Numbers are flush
// right; cells of text are flush left and have as many lines as they need.
enum class Cells { kNumbers, kText };
std::string HtmlTable(std::span<const TableRow> rows, Cells cells = Cells::kNumbers);
// A heading of a section.
std::string HtmlHeading(const std::string& text);
// A picture in its place; a narrow window scrolls it.
std::string HtmlPicture(const std::string& svg);
// `text`, which may come from anywhere, between the tags of `tag`.
std::string HtmlElement(const char* tag, const std::string& text);

}  // namespace syntra
