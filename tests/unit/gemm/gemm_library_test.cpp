// A third-party library is identified, limited to one thread, tested with a known product, and refused with the reason.
#include "gemm/gemm_library.h"
#include "base/os/loaded_library.h"
#include "plain_problem.h"
#include "refusal.h"

#include <cstdlib>

namespace st {
namespace {

std::string file_of(const char* kind) { return text(ST_LIBRARIES "/lib", kind, "_blas.so"); }

void expect_refused(const char* name, const std::string& file, const char* words) {
  EXPECT_TRUE(refuses(Code::unavailable, {words, file}, [&] { const GemmLibrary library(name, file); })) << file << " for " << name;
}

float product_of(const GemmLibrary& library) {
  const float a = 3, b = 4;
  float c = 5;
  library.multiply(1, 1, 1, 2, {&a, 1, false}, {&b, 1, false}, 1, &c, 1);
  return c;
}

TEST(GemmLibrary, IsKnownByItsNameVersionAndKernelsAsOneWord) {
  EXPECT_EQ(GemmLibrary("openblas", file_of("able")).identity(), "openblas-0.0.1-Three_Loops_1");
  EXPECT_EQ(GemmLibrary("onednn", file_of("able")).identity(), "onednn-9.8.7");
}

TEST(GemmLibrary, MultipliesOnOneThreadAndGivesTheHostItsNumbersBack) {
  // In its own file: MKL's first user in a process chooses the threading layer.
  const GemmLibrary mkl("mkl", file_of("sycl"));
  EXPECT_EQ(mkl.identity(), "mkl-1999.2.3");
  const os::LoadedLibrary library(file_of("sycl"));
  library.need<int (*)(int)>("MKL_Set_Num_Threads_Local")(7);
  EXPECT_EQ(product_of(mkl), 29);
  EXPECT_EQ(library.need<int (*)(int)>("MKL_Set_Num_Threads_Local")(0), 7);
  const GemmLibrary onednn("onednn", file_of("able"));
  const os::LoadedLibrary able(file_of("able"));
  EXPECT_EQ(product_of(onednn), 29);
  EXPECT_EQ(able.need<int (*)()>("omp_get_max_threads")(), 5);
}

TEST(GemmLibrary, IsRefusedWithTheReasonWhereItCannotBeUsed) {
  expect_refused("openblas", "/nowhere/libopenblas.so.0", "cannot open shared object file");
  expect_refused("openblas", "/proc/self/status", "");  // the text depends on the version of glibc
  expect_refused("openblas", ST_LIBRARIES, "Is a directory");
  expect_refused("openblas", file_of("nameless"), "has no function cblas_sgemm");
  expect_refused("mkl", file_of("nameless"), "has no function cblas_sgemm_64");
  expect_refused("onednn", file_of("nameless"), "has no function dnnl_sgemm");
  expect_refused("onednn", file_of("sycl"), "runtime 512");
  expect_refused("openblas", file_of("betaless"), "computes wrong products");
}

TEST(GemmLibrary, IsLeftToTheHostThatHasSetItsThreads) {
  const os::LoadedLibrary hosts(file_of("busy"));
  EXPECT_FALSE(hosts.was_open());
  expect_refused("openblas", file_of("busy"), "in use by this process with 4 threads");
  EXPECT_EQ(hosts.need<int (*)()>("openblas_get_num_threads")(), 4);
  hosts.need<void (*)(int)>("openblas_set_num_threads")(1);
  EXPECT_EQ(product_of(GemmLibrary("openblas", file_of("busy"))), 29);
}

TEST(GemmLibraries, AreSearchedWhereTheEnvironmentSaysAndAbsentOnesAreListed) {
  setenv("SCALETRAIN_OPENBLAS", file_of("able").c_str(), 1);
  setenv("SCALETRAIN_MKL", "/nowhere/libmkl_rt.so", 1);
  setenv("SCALETRAIN_ONEDNN", "/nowhere/not-asked", 1);
  setenv("SCALETRAIN_ONEDNN_OPENMP", file_of("betaless").c_str(), 1);
  const GemmLibraries& libraries = gemm_libraries();
  ASSERT_EQ(libraries.found.size(), 1U);
  EXPECT_EQ(libraries.found[0]->file(), file_of("able"));
  ASSERT_EQ(libraries.absent.size(), 2U);
  EXPECT_TRUE(libraries.absent[0].starts_with("mkl: /nowhere/libmkl_rt.so: ")) << libraries.absent[0];
  EXPECT_TRUE(libraries.absent[1].starts_with("onednn: ")) << libraries.absent[1];
  EXPECT_NE(libraries.absent[1].find("computes wrong products"), std::string::npos) << libraries.absent[1];
  EXPECT_EQ(&gemm_libraries(), &libraries);
  EXPECT_EQ(&gemm_library_of("openblas-0.0.1-Three_Loops_1"), libraries.found[0].get());
  EXPECT_THROW(gemm_library_of("mkl-1999.2.3"), Error);
}

TEST(GemmLibrary, IsOfFp32WithUnitRowsOrColumnsAndSomethingToSum) {
  const GemmProblem plain = plain_problem(5, 6, 7);
  const auto takes = [&](auto change) {
    GemmProblem p = plain;
    change(p);
    return library_multiplies(p);
  };
  EXPECT_TRUE(takes([](GemmProblem&) {}));
  EXPECT_TRUE(takes([](GemmProblem& p) { p.a = {1, 9}, p.b = {1, 7}, p.c = {1, 5}; }));
  EXPECT_TRUE(takes([](GemmProblem& p) { p.m = 1, p.a = {0, 1}; })) << "of one row, the stride is nothing";
  EXPECT_FALSE(takes([](GemmProblem& p) { p.a = {14, 2}; }));
  EXPECT_FALSE(takes([](GemmProblem& p) { p.c = {12, 2}; }));
  EXPECT_FALSE(takes([](GemmProblem& p) { p.k = 0; }));
  EXPECT_FALSE(takes([](GemmProblem& p) { p.b.row = int64_t{1} << 32; }));
  EXPECT_FALSE(takes([](GemmProblem& p) { p.a_type = DType::bf16; }));
}

}  // namespace
}  // namespace st
