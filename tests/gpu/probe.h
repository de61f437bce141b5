// What the programs of tests/gpu share: JSON lines on stdout, medians, events, device memory. Every failed call ends the program with its
// name.
#pragma once
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

namespace probe {

#define MUST(call)                                                                               \
  do {                                                                                           \
    if (auto status = (call); int(status) != 0) {                                                \
      std::printf("{\"error\":%d,\"call\":\"%s\",\"line\":%d}\n", int(status), #call, __LINE__); \
      std::fflush(stdout);                                                                       \
      std::exit(1);                                                                              \
    }                                                                                            \
  } while (false)

/// One line of JSON, written when it ends, so that a program that is stopped leaves what it has measured.
class Line {
 public:
  Line(const char* key, const std::string& name) { (*this)(key, name); }
  Line(const Line&) = delete;
  ~Line() {
    std::printf("{%s}\n", text_.str().c_str());
    std::fflush(stdout);
  }
  template <class T>
  Line& operator()(const char* key, const T& value) {
    text_ << (text_.tellp() > 0 ? "," : "") << '"' << key << "\":";
    put(value);
    return *this;
  }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      text_ << (value ? "true" : "false");
    } else if constexpr (std::is_arithmetic_v<T>) {
      text_ << value;
    } else if constexpr (std::is_convertible_v<T, std::string>) {
      text_ << '"' << value << '"';
    } else {
      const char* comma = "";
      text_ << '[';
      for (const auto& item : value) text_ << comma, put(item), comma = ",";
      text_ << ']';
    }
  }
  std::ostringstream text_;
};

/// {median, 10th and 90th percentile}: how every time is reported.
inline std::vector<double> spread(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double share) { return samples[size_t(share * double(samples.size() - 1) + 0.5)]; };
  return {at(0.5), at(0.1), at(0.9)};
}

inline double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Device time of `body(round)` in ms by events, one sample a round of `calls` calls, after three calls that are not counted.
template <class Body>
std::vector<double> device_ms(cudaStream_t stream, int rounds, int calls, const Body& body) {
  cudaEvent_t begin, end;
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  for (int i = 0; i < 3; ++i) body(i);
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    float ms = 0;
    MUST(cudaEventRecord(begin, stream));
    for (int i = 0; i < calls; ++i) body(round * calls + i);
    MUST(cudaEventRecord(end, stream));
    MUST(cudaEventSynchronize(end));
    MUST(cudaEventElapsedTime(&ms, begin, end));
    samples.push_back(static_cast<double>(ms) / calls);
  }
  MUST(cudaGetLastError());
  MUST(cudaEventDestroy(begin));
  MUST(cudaEventDestroy(end));
  return samples;
}

/// Host time of `body()` in us, one sample a round of `calls` calls; the stream is drained before each round.
template <class Body>
std::vector<double> host_us(cudaStream_t stream, int rounds, int calls, const Body& body) {
  for (int i = 0; i < 3; ++i) body();
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    MUST(cudaStreamSynchronize(stream));
    double begin = seconds();
    for (int i = 0; i < calls; ++i) body();
    samples.push_back((seconds() - begin) * 1e6 / calls);
  }
  MUST(cudaStreamSynchronize(stream));
  return samples;
}

template <class T = char>
T* on_device(size_t count) {
  void* data = nullptr;
  MUST(cudaMalloc(&data, count * sizeof(T)));
  return static_cast<T*>(data);
}

inline cudaStream_t new_stream() {
  cudaStream_t stream;
  MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

}  // namespace probe
