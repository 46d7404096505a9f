// Adds the functions that find occurrences to the Python module.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_scan(nanobind::module_& module);

}  // namespace dropdtw
