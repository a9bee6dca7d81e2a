// SPDX-License-Identifier: Apache-2.0
// How help and manual describe an option: "--nodes INT", "Number of nodes (1 to 1000000; default
// 1)".
#pragma once

#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
class Option;
}  // namespace CLI

namespace syntra {

// What follows the option's name: "INT", "{srun,mpirun}", "FILE ..."; empty for a flag.
std::string OptionValue(const CLI::Option& option);

// The option's description, then its range, its default and what it excludes, in parentheses.
std::string MeaningOf(const CLI::Option& option);

// What follows the name of a command: "[OPTIONS] checkpoint [file...]".
std::string ArgumentsOf(const CLI::App& app);

std::shared_ptr<CLI::FormatterBase> HelpFormat();

}  // namespace syntra
