// Defines what the Python module has for pairs.
#pragma once
#include <nanobind/nanobind.h>

namespace dropdtw {

void define_pairs(nanobind::module_& module);

}  // namespace dropdtw
