#include "gemm/gemm_library.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "base/heap.h"

namespace st {
namespace {

// Values from cblas.h, mkl_service.h and dnnl_types.h.
constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;
constexpr int kMklSequential = 1;
constexpr unsigned kDnnlSequential = 1, kDnnlOpenmp = 2;

struct MklVersion {
  int major, minor, update;
  const char *status, *build, *processor, *platform;
};
struct DnnlVersion {
  int major, minor, patch;
  const char* hash;
  unsigned cpu_runtime, gpu_runtime;
};

/// Where to look for a library: the first variable that is set names its file.
struct Place {
  std::string_view name;
  std::array<const char*, 2> variables;
  std::array<const char*, 3> files;
};
constexpr Place kPlaces[] = {{"openblas", {"SCALETRAIN_OPENBLAS"}, {"libopenblas.so.0", "libopenblas.so", "libscipy_openblas.so"}},
                             {"mkl", {"SCALETRAIN_MKL"}, {"libmkl_rt.so.3", "libmkl_rt.so.2", "libmkl_rt.so"}},
                             {"onednn", {"SCALETRAIN_ONEDNN_OPENMP", "SCALETRAIN_ONEDNN"}, {"libdnnl.so.3", "libdnnl.so"}}};

void look_for(const Place& place, GemmLibraries& libraries) {
  const auto open = [&](const char* file) { libraries.found.push_back(std::make_unique<const GemmLibrary>(place.name, file)); };
  std::string why;
  try {
    for (const char* variable : place.variables) {
      const char* named = variable == nullptr ? nullptr : std::getenv(variable);
      if (named != nullptr && *named != '\0') return open(named);
    }
    for (const char* file : place.files) {
      if (file == nullptr) break;
      try {
        return open(file);
      } catch (const Error& error) {
        why += (why.empty() ? "" : "; ") + error.message();
      }
    }
  } catch (const Error& error) {
    why = error.message();
  }
  libraries.absent.push_back(text(place.name, ": ", why));
}

/// Makes a word: a tuning cache line consists of words, and a key's fields are separated by slashes and commas.
std::string word_of(std::string said) {
  constexpr size_t kMost = 80;
  for (char& c : said)
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '.' && c != '-') c = '_';
  return said.substr(0, kMost);
}

bool is_written(const MatrixStrides& at, int64_t rows, int64_t columns) {
  const auto fits = [](int64_t stride, int64_t inside, int64_t count) { return (stride >= inside || count == 1) && stride <= INT_MAX; };
  return (at.column == 1 && fits(at.row, columns, rows)) || (at.row == 1 && fits(at.column, rows, columns));
}

}  // namespace

/// Sets the library's number of threads to one for this thread during its lifetime, then restores it: it may be the host's.
class GemmLibrary::OneThread {
 public:
  explicit OneThread(const GemmLibrary& library) : library_(library) {
    if (library_.mkl_threads_ != nullptr) mkl_ = library_.mkl_threads_(1);
    if (library_.openblas_threads_ != nullptr && library_.openblas_threads_() != 1) library_.set_openblas_threads_(1);  // host's change
    if (library_.set_omp_threads_ == nullptr) return;
    omp_ = library_.omp_threads_();
    if (omp_ != 1) library_.set_omp_threads_(1);
  }
  ~OneThread() {
    if (library_.mkl_threads_ != nullptr && mkl_ != 1) library_.mkl_threads_(mkl_);
    if (omp_ > 1) library_.set_omp_threads_(omp_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const GemmLibrary& library_;
  int mkl_ = 0, omp_ = 0;
};

GemmLibrary::GemmLibrary(std::string_view name, const std::string& file) : library_(file) {
  set_omp_threads_ = library_.find<void (*)(int)>("omp_set_num_threads");
  omp_threads_ = library_.find<int (*)()>("omp_get_max_threads");
  if (omp_threads_ == nullptr) set_omp_threads_ = nullptr;
  const OneThread one(*this);  // setting OpenBLAS's number of threads also sets OpenMP's
  const std::string version = name == "openblas" ? open_openblas() : name == "mkl" ? open_mkl() : open_onednn();
  identity_ = word_of(text(name, "-", version));
  require(multiplies_correctly(), Code::unavailable, file, " (", identity_, ") computes wrong products");
}

std::string GemmLibrary::open_openblas() {
  // The OpenBLAS project's own wheel, scipy_openblas32, prefixes its symbols.
  const std::string prefix = library_.find<void*>("scipy_cblas_sgemm") != nullptr ? "scipy_" : "";
  const auto named = [&](const char* name) { return prefix + name; };
  cblas_ = library_.need<Cblas<int>>(named("cblas_sgemm").c_str());
  set_openblas_threads_ = library_.need<void (*)(int)>(named("openblas_set_num_threads").c_str());
  openblas_threads_ = library_.need<int (*)()>(named("openblas_get_num_threads").c_str());
  // Its number of threads is process-wide.
  require(!library_.was_open() || openblas_threads_() == 1, Code::unavailable, library_.name(), " is already in use by this process with ",
          openblas_threads_(), " threads, which would have to be set to one");
  set_openblas_threads_(1);
  const char* config = library_.need<const char* (*)()>(named("openblas_get_config").c_str())();  // "OpenBLAS 0.3.21 DYNAMIC_ARCH ..."
  const auto core = library_.find<const char* (*)()>(named("openblas_get_corename").c_str());
  const std::vector<std::string> words = words_of(config == nullptr ? "" : config);
  const auto parallel = library_.find<int (*)()>(named("openblas_get_parallel").c_str());
  require(parallel == nullptr || parallel() != 0, Code::unavailable, library_.name(),
          " is built without threads, so it must not be called from several threads at once");
  require(std::ranges::find(words, "USE64BITINT") == words.end(), Code::unavailable, library_.name(),
          " uses 64-bit integers; use a build with 32-bit integers");
  return text(words.size() > 1 ? words[1] : "of-no-version", core == nullptr ? "" : "-", core == nullptr ? "" : core());
}

std::string GemmLibrary::open_mkl() {
  // Not cblas_sgemm: its integer width depends on the whole process.
  cblas64_ = library_.need<Cblas<int64_t>>("cblas_sgemm_64");
  mkl_threads_ = library_.need<int (*)(int)>("MKL_Set_Num_Threads_Local");
  const auto tell_version = library_.need<void (*)(MklVersion*)>("MKL_Get_Version");
  const auto set_layer = library_.find<int (*)(int)>("MKL_Set_Threading_Layer");
  if (set_layer != nullptr && !library_.was_open()) set_layer(kMklSequential);  // else it would start an OpenMP runtime
  MklVersion version{};
  tell_version(&version);
  return text(version.major, ".", version.minor, ".", version.update);
}

std::string GemmLibrary::open_onednn() {
  dnnl_ = library_.need<Dnnl>("dnnl_sgemm");
  const DnnlVersion* version = library_.need<const DnnlVersion* (*)()>("dnnl_version")();
  require(version->cpu_runtime == kDnnlSequential || version->cpu_runtime == kDnnlOpenmp, Code::unavailable, library_.name(),
          " has its own threads, which cannot be limited to one (runtime ", version->cpu_runtime,
          "); use a build with OpenMP or without threads");
  return text(version->major, ".", version->minor, ".", version->patch);
}

void GemmLibrary::multiply(int64_t m, int64_t n, int64_t k, float alpha, const LibraryFactor& a, const LibraryFactor& b, float beta,
                           float* c, int64_t row) const {
  const OneThread one(*this);
  const auto trans = [](const LibraryFactor& factor) { return factor.transposed ? kTrans : kNoTrans; };
  const auto call = [&]<class Integer>(Cblas<Integer> gemm) {
    gemm(kRowMajor, trans(a), trans(b), static_cast<Integer>(m), static_cast<Integer>(n), static_cast<Integer>(k), alpha, a.data,
         static_cast<Integer>(a.stride), b.data, static_cast<Integer>(b.stride), beta, c, static_cast<Integer>(row));
  };
  if (cblas64_ != nullptr) return call(cblas64_);
  if (cblas_ != nullptr) return call(cblas_);
  const int status =
      dnnl_(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, alpha, a.data, a.stride, b.data, b.stride, beta, c, row);
  require(status == 0, Code::internal, "gemm: dnnl_sgemm of ", identity_, " failed with status ", status);
}

/// Tests with whole numbers, whose sums are exact in any order: alpha, beta, both transposes and gaps between rows.
bool GemmLibrary::multiplies_correctly() const {
  constexpr int64_t kM = 3, kN = 5, kK = 4, kRow = 7;
  std::array<float, kRow * kRow> a{}, b{};
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 5, b[i] = static_cast<float>(i % 13) - 6;
  for (const bool trans_a : {false, true})
    for (const bool trans_b : {false, true}) {
      std::array<float, kM * kRow> c{}, right{};
      for (size_t i = 0; i < c.size(); ++i) c[i] = right[i] = static_cast<float>(i);
      for (int64_t i = 0; i < kM; ++i)
        for (int64_t j = 0; j < kN; ++j) {
          float sum = 0;
          for (int64_t p = 0; p < kK; ++p)
            sum += a[static_cast<size_t>(trans_a ? p * kRow + i : i * kRow + p)] *
                   b[static_cast<size_t>(trans_b ? j * kRow + p : p * kRow + j)];
          float& element = right[static_cast<size_t>(i * kRow + j)];
          element = 2 * sum + 3 * element;
        }
      multiply(kM, kN, kK, 2, {a.data(), kRow, trans_a}, {b.data(), kRow, trans_b}, 3, c.data(), kRow);
      if (c != right) return false;
    }
  return true;
}

bool library_multiplies(const GemmProblem& problem) {
  const GemmProblem p = as_run(problem);
  const bool floats = p.a_type == DType::f32 && p.b_type == DType::f32 && p.c_type == DType::f32;
  const bool sizes = std::ranges::all_of(std::array{p.m, p.n, p.k}, [](int64_t size) { return size >= 1 && size <= INT_MAX; });
  return floats && sizes && p.c.column == 1 && is_written(p.c, p.m, p.n) && is_written(p.a, p.m, p.k) && is_written(p.b, p.k, p.n);
}

const GemmLibraries& gemm_libraries() {
  static const auto& libraries = *once_for_the_process([] {
    auto made = std::make_unique<GemmLibraries>();
    for (const Place& place : kPlaces) look_for(place, *made);
    return made.release();  // never freed: its libraries are never closed, and threads may still run when the process ends
  });
  return libraries;
}

const GemmLibrary& gemm_library_of(std::string_view identity) {
  for (const auto& library : gemm_libraries().found)
    if (library->identity() == identity) return *library;
  fail(Code::unavailable, text("gemm: library ", identity, " was not found by this process"));
}

}  // namespace st
