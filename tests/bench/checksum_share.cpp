// The cost of CRC-32C in a checkpoint's write: writes 256 MiB to a file in the given folder (default /tmp), as a checkpoint does, with and
// without a checksum of each block before it. Also times each implementation of the checksum alone. Rounds are interleaved; prints medians
// and the 10th to 90th percentile.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "checkpoint/sequential_file.h"
#include "checkpoint/write_windows.h"
#include "samples.h"

namespace {

constexpr size_t kBytes = size_t{256} << 20, kBlock = 1 << 20, kPiece = 256 << 10;
constexpr int kRounds = 15;

double seconds_now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

using Checksum = decltype(st::Crc32cImplementation::run);

double checksum(const std::vector<std::byte>& bytes, Checksum run) {
  const double start = seconds_now();
  uint32_t sum = 0;
  for (size_t at = 0; at < bytes.size(); at += kBlock) sum ^= run({bytes.data() + at, kBlock}, 0);
  const double seconds = seconds_now() - start;
  return sum == 1 ? -seconds : seconds;  // so that the sum is used
}

/// `run` nullptr: no checksums.
double write_file(const std::vector<std::byte>& bytes, const std::string& path, Checksum run) {
  const double start = seconds_now();
  st::WriteWindows windows;
  st::SequentialFile file(path, kBytes, windows);
  uint32_t sum = 0;
  for (size_t at = 0; at < bytes.size(); at += kPiece) {
    const std::span<const std::byte> piece(bytes.data() + at, kPiece);
    if (run != nullptr) sum ^= run(piece, 0);
    file.append(piece);
  }
  file.finish();
  const double seconds = seconds_now() - start;
  unlink(path.c_str());
  return sum == 1 ? -seconds : seconds;
}

void print(const std::string& name, const std::vector<double>& samples, const char* unit) {
  std::printf("%-28s %8.3f %s (%.3f to %.3f)\n", name.c_str(), bench::median(samples), unit, bench::quantile(samples, 0.1),
              bench::quantile(samples, 0.9));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = std::string(argc > 1 ? argv[1] : "/tmp") + "/checksum_share." + std::to_string(getpid());
  std::vector<std::byte> bytes(kBytes);
  std::mt19937_64 random(7);
  for (size_t i = 0; i < bytes.size(); i += 8) *reinterpret_cast<uint64_t*>(bytes.data() + i) = random();
  const auto ways = st::crc32c_ways();
  const auto is_here = [](const st::Crc32cImplementation& way) { return way.is_here(); };
  const st::Crc32cImplementation& first = *std::ranges::find_if(ways, is_here);
  std::vector<double> plain, ratio;
  std::vector<std::vector<double>> speeds(ways.size());
  for (int round = 0; round < kRounds; ++round) {
    const double without = write_file(bytes, path, nullptr);
    plain.push_back(kBytes / without / 1e9);
    ratio.push_back(write_file(bytes, path, first.run) / without);
    for (size_t i = 0; i < ways.size(); ++i)
      if (is_here(ways[i])) speeds[i].push_back(kBytes / checksum(bytes, ways[i].run) / 1e9);
  }
  print("without checksums", plain, "GB/s");
  print(std::string("with ") + first.name, ratio, "x as long");
  for (size_t i = 0; i < ways.size(); ++i)
    if (!speeds[i].empty()) print(ways[i].name, speeds[i], "GB/s");
}
