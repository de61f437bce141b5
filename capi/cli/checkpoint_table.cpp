#include "checkpoint_table.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "progress.h"
#include "safetensors_file.h"

namespace cli {
namespace {

/// One line, which steers no terminal: names and texts are whoever's who wrote the files.
std::string shown(const Json& value) {
  std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  std::ranges::replace_if(
      text, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, '?');
  return text;
}

void print_fact(const char* name, const std::string& value) { std::printf("%-16s %s\n", name, value.c_str()); }

int64_t element_bytes(std::string_view word) {
  const size_t digits = word.find_first_of("0123456789");
  return digits == std::string_view::npos ? 1 : std::stoll(std::string(word.substr(digits))) / 8;  // F32, BF16, I64, U8; BOOL
}

int64_t bytes_of_tensor(const Json& tensor) {
  int64_t bytes = element_bytes(tensor["dtype"].get<std::string>());
  for (const Json& dim : tensor["shape"]) bytes *= dim.get<int64_t>();
  return bytes;
}

std::string training_text(const Json& training) {
  std::string text;
  for (const char* key : {"updates", "epoch", "loss", "lr", "tokens", "items", "seed", "batch", "micro_batches"})
    if (training.contains(key) && !training[key].is_null())
      text += (text.empty() ? "" : ", ") + std::string(key) + " " + shown(training[key]);
  if (training.contains("loss_scaler") && training["loss_scaler"].is_object() && training["loss_scaler"].contains("scale"))
    text += ", loss scale " + shown(training["loss_scaler"]["scale"]);
  return text;
}

/// Those that differ from the recipe's defaults.
std::string recipe_difference(const Json& recipe) {
  std::string text;
  for (const Json& key : Json::parse(cli::text(st_recipe_keys))) {
    const auto name = key["name"].get<std::string>();
    if (recipe.contains(name) && recipe[name] != key["default"]) text += (text.empty() ? "" : ", ") + name + " " + shown(recipe[name]);
  }
  return text.empty() ? "all defaults" : text;
}

void print_tensors_of(const Json& tensors, std::string_view kind) {
  size_t widest = 0, count = 0;
  int64_t bytes = 0;
  for (const Json& tensor : tensors) {
    if (tensor["kind"] != kind) continue;
    widest = std::max(widest, shown(tensor["name"]).size());
    bytes += bytes_of_tensor(tensor);
    ++count;
  }
  if (count == 0) return;
  std::printf("\n%zu %s tensor%s, %s bytes\n", count, std::string(kind).c_str(), count == 1 ? "" : "s", with_commas(bytes).c_str());
  for (const Json& tensor : tensors) {
    if (tensor["kind"] != kind) continue;
    const size_t pieces = tensor["pieces"].size();
    std::printf("  %-*s  %-4s %15s  %s%s\n", static_cast<int>(widest), shown(tensor["name"]).c_str(), shown(tensor["dtype"]).c_str(),
                with_commas(bytes_of_tensor(tensor)).c_str(), tensor["shape"].dump().c_str(),
                pieces > 1 ? (" in " + std::to_string(pieces) + " files").c_str() : "");
  }
}

}  // namespace

void print_checkpoint(const Json& m) {
  print_fact("checkpoint", shown(m["checkpoint"]));
  print_fact("step", shown(m["step"]));
  if (const std::string training = training_text(m["training"]); !training.empty()) print_fact("training", training);
  if (!m["recipe"].empty()) print_fact("recipe", recipe_difference(m["recipe"]));
  print_fact("written",
             shown(m["time"]) + " on " + shown(m["host"]) + " by scaletrain " + shown(m["library"]) + ", format " + shown(m["version"]));
  for (const auto& [key, value] : m["metadata"].items()) print_fact("metadata", shown(key) + ": " + shown(value));
  for (const Json& file : m["files"]) print_fact("file", shown(file["name"]) + ", " + with_commas(file["bytes"].get<int64_t>()) + " bytes");
  for (const char* kind : {"parameter", "optimizer", "host"}) print_tensors_of(m["tensors"], kind);
}

}  // namespace cli
