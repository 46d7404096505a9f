// Defines what the Python module has for finding occurrences.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_scan(nanobind::module_& module);

}  // namespace dropdtw
