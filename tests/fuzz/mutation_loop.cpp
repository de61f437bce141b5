// A minimal substitute for libFuzzer: inputs of a corpus, mutated from a seed, run in a child process.
//   read_checkpoint --corpus DIR --seconds 5 --seed 1        a finding names its seed
//   read_checkpoint --corpus DIR --only 1234                 only that one, in this process
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "seeded_trials.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kLongest = 1 << 16;
constexpr int64_t kMostMemory = 1 << 20;  // KiB that a process may have used at its end: inputs are small, and so must be their cost
constexpr std::array<std::string_view, 26> kWords = {"[",
                                                     "]",
                                                     "{",
                                                     "}",
                                                     "\"",
                                                     ",",
                                                     ":",
                                                     "\\u0000",
                                                     "-1",
                                                     "0",
                                                     "1e9",
                                                     "9223372036854775807",
                                                     "18446744073709551616",
                                                     "null",
                                                     "../",
                                                     "\xFF",
                                                     "\"F32\"",
                                                     "\"shape\":[",
                                                     "\"pieces\":[{",
                                                     "\"data_offsets\":[",
                                                     "__metadata__",
                                                     "\"file\":0",
                                                     "NaN",
                                                     "-Infinity",
                                                     "1e999",
                                                     "\\\""};

std::vector<std::string> corpus_of(const std::string& folder) {
  std::vector<std::string> corpus;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return corpus;
}

std::string input_of(uint64_t seed, const std::vector<std::string>& corpus) {
  std::mt19937_64 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  std::string input = corpus[below(corpus.size())];
  for (size_t left = 1 + below(8); left > 0; --left) {
    const size_t at = below(input.size()), many = std::min(1 + below(20), input.size() - at);
    const std::string& other = corpus[below(corpus.size())];
    switch (random() % 8) {
      case 0:
        if (!input.empty()) input[at] = static_cast<char>(random());
        break;
      case 1:
        if (!input.empty()) input[at] = static_cast<char>(input[at] ^ 1 << random() % 8);
        break;
      case 2:
        input.erase(at, many);
        break;
      case 3:
        input.insert(at, input.substr(at, many));
        break;
      case 4:
        input.insert(at, kWords[below(kWords.size())]);
        break;
      case 5:
        input.replace(at, many, kWords[below(kWords.size())]);
        break;
      case 6:
        input.resize(at);
        break;
      default:
        input = input.substr(0, at) + other.substr(below(other.size()));
    }
  }
  input.resize(std::min(input.size(), kLongest));
  return input;
}

void play(uint64_t seed, const std::vector<std::string>& corpus) {
  const std::string input = input_of(seed, corpus);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

struct Shared {
  std::atomic<uint64_t> seed, played;
};

}  // namespace

int main(int count, char** words) {
  const st::fuzz::TrialOptions options = st::fuzz::trial_options(count, words);
  const std::string folder = options.other("--corpus");
  const std::vector<std::string> corpus = corpus_of(folder);
  if (corpus.empty()) return std::fprintf(stderr, "the corpus %s is empty\n", folder.c_str()), 1;
  if (options.only) return play(options.seed, corpus), 0;

  auto& shared = st::fuzz::shared_zeros<Shared>();
  const pid_t child = fork();
  if (child == 0) {
    for (const std::string& input : corpus) LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
    for (shared.seed = options.seed; std::chrono::steady_clock::now() < end; ++shared.seed, ++shared.played) play(shared.seed, corpus);
    std::exit(0);
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  std::printf("%llu inputs, %ld KiB\n", static_cast<unsigned long long>(shared.played), used.ru_maxrss);
  if (status != 0) return std::fprintf(stderr, "FINDING at --only %llu\n", static_cast<unsigned long long>(shared.seed)), 1;
  if (used.ru_maxrss > kMostMemory) return std::fprintf(stderr, "FINDING: more memory than such inputs may cost\n"), 1;
  return shared.played > 0 ? 0 : 1;
}
