// Prints what the plug-in's host side finds, each time in a new process: a library that was opened once stays open.
//   cuda_probe profiles                                the devices' profiles, one a line
//   cuda_probe classes LATER                           the devices' kernel classes, one a line; LATER: later, or another word
//   cuda_probe cublaslt                                the version of cuBLASLt
//   cuda_probe library STEM MAJOR WHEELS [OPEN...]     the path or name by which a library was found, after the files OPEN were opened
// Prints "error: " and the message where it is refused.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/device_profile.h"
#include "backend/cuda/library_products.h"
#include "backend/cuda/vendor_library.h"
#include "base/error.h"

namespace {

using namespace st;
using namespace st::cuda;

void print_profiles() {
  for (const DeviceProfile& device : device_profiles(load_driver()))
    std::printf("%s; registers %d, shared %lld of %lld, l2 %lld, %lld B/s, %s; %s\n", device.text().c_str(), device.registers,
                static_cast<long long>(device.block_shared), static_cast<long long>(device.unit_shared), static_cast<long long>(device.l2),
                static_cast<long long>(device.bytes_per_second), device.is_exclusive ? "exclusive" : "shared",
                parse_machine_profile(device.machine().json()).json().c_str());
}

void print_classes(bool has_later_code) {
  const Driver driver = load_driver();
  for (const DeviceProfile& device : device_profiles(driver)) {
    std::string why_no_library;
    const std::string code = device.code_class(has_later_code);
    std::printf("%s\n",
                kernel_class_of(code, "BUILD", driver, ProductMeans(code, cublaslt_if_there(load_cublaslt, why_no_library))).c_str());
  }
}

void print_library(int count, char** words) {
  for (int i = 3; i < count; ++i) os::LoadedLibrary{words[i]};
  const VendorLibrary library = {"the sample", words[0], std::atoi(words[1]), std::string_view(words[2]) == "wheels", "install a sample"};
  const os::LoadedLibrary found = open_vendor_library(library);
  std::printf("%s, version %d\n", found.name().c_str(), found.need<int (*)()>("sample_version")());
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count > 4 && std::string_view(words[1]) == "library") {
      print_library(count - 2, words + 2);
    } else if (count > 2 && std::string_view(words[1]) == "classes") {
      print_classes(std::string_view(words[2]) == "later");
    } else if (count > 1 && std::string_view(words[1]) == "cublaslt") {
      std::printf("%s\n", cublaslt_version_text(load_cublaslt().version).c_str());
    } else {
      print_profiles();
    }
  } catch (const Error& error) {
    std::printf("error: %s\n", error.what());
  }
}
