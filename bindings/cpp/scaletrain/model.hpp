// A model: a graph and its parameters, which can be read, set, copied and streamed.
#pragma once

#include <scaletrain/model.h>

#include <istream>
#include <ostream>
#include <scaletrain/graph.hpp>
#include <scaletrain/pending.hpp>
#include <string>
#include <vector>

namespace scaletrain {

struct ParameterInfo {
  std::string name;
  DType dtype = DType::f32;
  bool trainable = true;
  std::vector<int64_t> dims;
};

struct Rename {
  std::string from;  // name in the stream; one "*" matches any text: "h.*.ln_1.weight"
  std::string to;    // name in the model
};
struct ReadOptions {
  bool partial = false;  // read names that match, report the rest
  std::vector<Rename> renames;
  std::vector<std::string> names;  // patterns of names in the model, "block.*.mlp.*"; others are ignored. Empty: all
  bool overwrite = false;          // Checkpoint::load: read once; after an error in the data some views may have changed
};
struct ReadReport {
  int64_t read = 0;
  std::vector<std::string> missing, unexpected;
};

/// Takes bytes; throws if it cannot.
using WriteFunction = std::function<void(const void* bytes, int64_t count)>;
/// Fills at most `room` bytes and returns how many; 0 is the end.
using ReadFunction = std::function<int64_t(void* bytes, int64_t room)>;

class Checkpoint;
struct LoadReport;

namespace detail {

/// Options for the C ABI; points into the options it is made of.
class RawReadOptions {
 public:
  explicit RawReadOptions(const ReadOptions& options) {
    check(st_read_options_init(&raw_, sizeof raw_));
    for (const Rename& rename : options.renames) renames_.push_back({rename.from.c_str(), rename.to.c_str()});
    for (const std::string& name : options.names) names_.push_back(name.c_str());
    raw_.partial = options.partial ? 1 : 0;
    raw_.overwrite = options.overwrite ? 1 : 0;
    raw_.rename_count = static_cast<int64_t>(renames_.size());
    raw_.renames = renames_.data();
    raw_.name_count = static_cast<int64_t>(names_.size());
    raw_.names = names_.data();
  }
  RawReadOptions(const RawReadOptions&) = delete;
  RawReadOptions& operator=(const RawReadOptions&) = delete;

  const st_read_options* get() const noexcept { return &raw_; }

 private:
  std::vector<st_rename> renames_;
  std::vector<const char*> names_;
  st_read_options raw_;
};

}  // namespace detail

/// The trainer of a rank shards its model over the ranks with zero 3, stages or tensor (scaletrain/model.h). Then clone, get, digest and
/// the writes throw wrong_state, at once, unless this rank has what they read; those that end in _collective are made by all ranks, and
/// each gets the whole. On a model that is not sharded the two are alike.
class Model : public detail::Handle<st_model, st_model_destroy> {
 public:
  Model(const Graph& graph, int64_t seed) : Handle(detail::Access::host(graph)) { done(st_model_create(graph.get(), seed, out())); }
  /// "gpt", "llama" or "mlp"; "gpt2" or "llama-hf", whose json is Hugging Face's config.json; json "" takes the defaults.
  Model(const Context& context, const std::string& name, const std::string& json, int64_t seed) : Handle(detail::Access::host(context)) {
    done(st_model_builtin(context.get(), name.c_str(), json.empty() ? nullptr : json.c_str(), seed, out()));
  }
  /// A copy with the same graph and its own parameters.
  Model clone() const { return copied(st_model_clone); }
  Model clone_collective() const { return copied(st_model_clone_collective); }

  int64_t parameter_count() const {
    int64_t count = 0;
    done(st_model_parameter_count(get(), &count));
    return count;
  }
  ParameterInfo parameter(int64_t index) const {
    st_parameter_info raw;
    done(st_parameter_info_init(&raw, sizeof raw));
    done(st_model_parameter(get(), index, &raw));
    return {raw.name, static_cast<DType>(raw.dtype), raw.trainable != 0, std::vector<int64_t>(raw.dims, raw.dims + raw.rank)};
  }
  /// for (const ParameterInfo& parameter : model.parameters())
  std::vector<ParameterInfo> parameters() const {
    std::vector<ParameterInfo> all;
    for (int64_t i = 0, n = parameter_count(); i < n; ++i) all.push_back(parameter(i));
    return all;
  }

  /// Copies and converts a whole parameter.
  void get(const std::string& name, const View& to) const { get_by(st_model_get, "Model::get", name, to); }
  void get_collective(const std::string& name, const View& to) const { get_by(st_model_get_collective, "Model::get_collective", name, to); }
  void set(const std::string& name, const View& from) const {
    const st_view raw = from.raw();
    done(st_model_set(get(), name.c_str(), &raw));
  }
  using Handle::get;

  /// this += t (from - this)
  void blend(const Model& from, double t) const { done(st_model_blend(get(), from.get(), t)); }
  std::string digest() const { return text(st_model_digest); }
  std::string digest_collective() const { return text(st_model_digest_collective); }

  void write_file(const std::string& path) const { done(st_model_write_file(get(), path.c_str(), nullptr)); }
  /// Copies the weights and writes them in the background.
  Pending write_file_async(const std::string& path) const { return begun(st_model_write_file, path); }
  /// Rank 0 writes; the paths of other ranks are ignored.
  void write_file_collective(const std::string& path) const { done(st_model_write_file_collective(get(), path.c_str(), nullptr)); }
  Pending write_file_async_collective(const std::string& path) const { return begun(st_model_write_file_collective, path); }
  /// A safetensors file, a folder with one, or the index of its shards.
  ReadReport read_file(const std::string& path, const ReadOptions& options = ReadOptions()) const {
    ReadReport report;
    read_file(path, options, report);
    return report;
  }
  /// Fills `report` also when it throws because names did not match.
  void read_file(const std::string& path, const ReadOptions& options, ReadReport& report) const {
    read_by(options, report, nullptr,
            [&](const st_read_options* raw, st_read_report* found) { return st_model_read_file(get(), path.c_str(), raw, found); });
  }

  /// All parameters as one safetensors stream, front to back.
  void write(const WriteFunction& write) const { write_by(st_model_write, write); }
  /// Each rank writes the whole stream.
  void write_collective(const WriteFunction& write) const { write_by(st_model_write_collective, write); }
  void write(std::ostream& stream) const {
    write([&](const void* bytes, int64_t count) {
      if (!stream.write(static_cast<const char*>(bytes), count)) throw Error(Status::io, "Model::write: writing to the stream failed");
    });
  }
  ReadReport read(const ReadFunction& read, const ReadOptions& options) const {
    ReadReport report;
    this->read(read, options, report);
    return report;
  }
  ReadReport read(const ReadFunction& read) const { return this->read(read, ReadOptions()); }
  ReadReport read(std::istream& stream, const ReadOptions& options) const {
    return read(
        [&](void* bytes, int64_t room) {
          stream.read(static_cast<char*>(bytes), room);
          if (stream.bad()) throw Error(Status::io, "Model::read: reading from the stream failed");
          return static_cast<int64_t>(stream.gcount());
        },
        options);
  }
  ReadReport read(std::istream& stream) const { return read(stream, ReadOptions()); }
  /// Fills `report` also when it throws because names did not match.
  void read(const ReadFunction& read, const ReadOptions& options, ReadReport& report) const;

  /// Loads the weights of a checkpoint ("": the newest valid). If it throws, no weight has changed. Defined in checkpoint.hpp.
  LoadReport load(const Checkpoint& checkpoint, const std::string& name = "", const ReadOptions& options = ReadOptions()) const;
  /// Fills `report` also when it throws because names did not match.
  void load(const Checkpoint& checkpoint, const std::string& name, const ReadOptions& options, LoadReport& report) const;

 private:
  explicit Model(const std::shared_ptr<detail::Host>& host) : Handle(host) {}

  // `call`: the local function or the collective one.
  template <class Call>
  Model copied(Call call) const {
    Model copy(host());
    done(call(get(), copy.out()));
    return copy;
  }
  template <class Call>
  void get_by(Call call, const char* what, const std::string& name, const View& to) const {
    const st_view raw = detail::writable(what, to).raw();
    done(call(get(), name.c_str(), &raw));
  }
  template <class Call>
  Pending begun(Call call, const std::string& path) const {
    Pending pending(host());
    done(call(get(), path.c_str(), pending.out()));
    return pending;
  }
  template <class Call>
  void write_by(Call call, const WriteFunction& write) const {
    Writing writing{write, {}};
    done(call(get(), Writing::take, &writing), &writing.fault);
  }

  template <class Call>
  void read_by(const ReadOptions& options, ReadReport& report, detail::Fault* fault, const Call& call) const {
    const detail::RawReadOptions raw(options);
    st_read_report found;
    done(st_read_report_init(&found, sizeof found));
    const st_status status = reading([&] {
      const st_status ended = call(raw.get(), &found);
      report.read = found.read;
      report.missing.assign(found.missing, found.missing + found.missing_count);
      report.unexpected.assign(found.unexpected, found.unexpected + found.unexpected_count);
      return ended;
    });
    done(status, fault);
  }

  struct Writing {
    const WriteFunction& write;
    detail::Fault fault;
    static st_status take(void* user, const void* bytes, int64_t count) {
      auto& self = *static_cast<Writing*>(user);
      return detail::shielded(self.fault, [&] { self.write(bytes, count); });
    }
  };
  struct Source {
    const ReadFunction& read;
    detail::Fault fault;
    static st_status give(void* user, void* bytes, int64_t room, int64_t* count) {
      auto& self = *static_cast<Source*>(user);
      return detail::shielded(self.fault, [&] { *count = self.read(bytes, room); });
    }
  };
};

inline void Model::read(const ReadFunction& read, const ReadOptions& options, ReadReport& report) const {
  Source source{read, {}};
  read_by(options, report, &source.fault,
          [&](const st_read_options* raw, st_read_report* found) { return st_model_read(get(), Source::give, &source, raw, found); });
}

/// JSON: the files, metadata and tensors, of any dtype, in a safetensors file, a folder with one, or the index of its shards.
inline std::string inspect_weights(const std::string& path) {
  const char* json = "";
  check(st_weights_inspect(path.c_str(), &json));
  return json;
}

}  // namespace scaletrain
