// Opens NVIDIA's libraries at run time. None is linked, so that this plug-in loads on a machine that has none of them.
#pragma once

#include <string>
#include <string_view>

#include "base/os/loaded_library.h"

namespace st::cuda {

/// A library as its files are named: `stem` and the major version of its interface, "libcublasLt.so" and 13.
struct VendorLibrary {
  std::string_view title;   // "the NVIDIA driver"
  std::string_view stem;    // "libcuda.so"
  int major;                // 1
  bool in_wheels;           // whether PyPI has it, as nvidia/*/lib/libcublasLt.so.13
  std::string_view remedy;  // how to get it: "install the NVIDIA driver"

  std::string file() const;  // "libcuda.so.1"
};

/// Opens it: the one that this process has open; else a file in a folder of SCALETRAIN_CUDA_PATH (separated by colons; also in their lib64
/// and lib); else the one that the loader finds; else, of `in_wheels`, that of the Python environment: below the site-packages that this
/// plug-in is in, and those of VIRTUAL_ENV. Throws unavailable with one line that has every place, why it was not taken, and the remedy.
os::LoadedLibrary open_vendor_library(const VendorLibrary& library);

}  // namespace st::cuda
