// The classes of scaletrain.hpp for Python, Java and C#. This file selects the classes, and replaces types that only C++ has (pairs, optionals,
// overloaded streams). Each language's own files, included below, convert arrays, functions, texts and errors. Needs SWIG 4.1 or newer;
// Python's limited API needs 4.4.
#if defined(SWIGPYTHON)
%module(package="scaletrain", threads="1") native
#else
%module native
#endif

%{
#include <scaletrain.hpp>
#include <scaletrain/gpt2_names.hpp>
%}

%include <stdint.i>
%include <std_string.i>
typedef int32_t st_value;  // or SWIG would make it a pointer that is never freed

// Not wrapped: the C ABI, and what only C++ uses.
%rename("$ignore", regextarget=1, fullname=1) "^st_.*";
%rename("$ignore", regextarget=1, fullname=1) "^scaletrain::detail::.*";
%ignore scaletrain::operator+;
%ignore scaletrain::operator-;
%ignore scaletrain::operator*;
%ignore scaletrain::operator/;
%feature("compactdefaultargs");  // each language has its own defaults; overloads for them would be ambiguous
#pragma SWIG nowarn=314,315,362,383,389,401,503

namespace scaletrain {
class View;
class Views;
class Attribute;
class Value;
class Context;
class Checkpoint;
class Communicator;
class Tensor;
struct HostOp;
struct OpType;
struct Stage;
struct Field;
struct Fill;
struct Transport;
}  // namespace scaletrain

#if defined(SWIGPYTHON)
%include "python/typemaps.i"
#elif defined(SWIGJAVA)
%include "java/typemaps.i"
#elif defined(SWIGCSHARP)
%include "csharp/typemaps.i"
#endif

// A class that owns a handle. close() ends the handle at once and throws if it cannot, also while another thread is in a call of it; objects
// made from it keep what they need. The language's object deletes the C++ object.
%define %handle(Noun)
%ignore scaletrain::Noun::Noun(Noun&&);
%ignore scaletrain::Noun::get() const;
%extend scaletrain::Noun {
  void close() { scaletrain::detail::Access::end(*$self); }
  bool is_closed() { return scaletrain::detail::Access::is_closed(*$self); }
}
%enddef
%handle(Accumulator)
%handle(Checkpoint)
%handle(Communicator)
%handle(Context)
%handle(Data)
%handle(DataParallel)
%handle(DistributedSampler)
%handle(Gemm)
%handle(Graph)
%handle(LossScaler)
%handle(Model)
%handle(Optimizer)
%handle(PackedMatrix)
%handle(Pending)
%handle(Pipeline)
%handle(Plan)
%handle(Predictor)
%handle(Recipe)
%handle(Schedule)
%handle(ShardedOptimizer)
%handle(Tensor)
%handle(Trainer)

// error.hpp
%ignore scaletrain::Error;
%ignore scaletrain::last_error;
%ignore scaletrain::check;
%rename(require_as_compiled) scaletrain::require();  // called when a language loads the library
%rename(live_handles_of) scaletrain::live_handles(const std::string&);
%include <scaletrain/error.hpp>

%include <scaletrain/dtype.hpp>

// context.hpp
%ignore scaletrain::HostOp;
%ignore scaletrain::OpType;
%ignore scaletrain::MemoryUse;
%ignore scaletrain::ContextOptions::log;
%ignore scaletrain::ContextOptions::parallel;
%ignore scaletrain::ContextOptions::alloc;
%ignore scaletrain::ContextOptions::free;
%ignore scaletrain::ContextOptions::tuning_cache;
%extend scaletrain::ContextOptions {
  void set_log(const scaletrain::LogFunction& log) { $self->log = log; }
  void set_parallel(const scaletrain::ParallelFunction& parallel) { $self->parallel = parallel; }
  void set_tuning_cache(const std::string& file) { $self->tuning_cache = file; }
}
%include <scaletrain/context.hpp>

// graph.hpp: attributes are the language's map; a scope has a begin and an end.
%ignore scaletrain::Attribute;
%ignore scaletrain::Scope;
%ignore scaletrain::Graph::scope;
%ignore scaletrain::Graph::apply(const std::string&, const std::vector<Value>&, const std::vector<Attribute>&) const;
%ignore scaletrain::Graph::made;
%ignore scaletrain::Graph::op;
%rename(parameter_values) scaletrain::Graph::parameter(const std::string&, const View&, bool) const;
%ignore scaletrain::Value::Value;
%ignore scaletrain::Value::graph;
%ignore scaletrain::Value::made;
%extend scaletrain::Graph {
  void begin_scope(const std::string& name) { scaletrain::check(st_graph_scope($self->get(), name.c_str())); }
  void end_scope() { scaletrain::check(st_graph_scope_end($self->get())); }
}
%include <scaletrain/graph.hpp>

%include <scaletrain/schedule.hpp>
%include <scaletrain/recipe.hpp>

// data.hpp: the two objects of split() are taken one by one.
%ignore scaletrain::Field;
%ignore scaletrain::Data::split;
%ignore scaletrain::Data::arrays(const Context&, int64_t, const Views&);
%ignore scaletrain::Data::callback;  // SWIG gives int64_t* another type than C++, so a struct wraps the function
%{
namespace scaletrain {
struct Fill {
  FillFunction function;
};
}  // namespace scaletrain
%}
%newobject scaletrain::Data::of_rows;
%extend scaletrain::Data {
  static scaletrain::Data* of_rows(const scaletrain::Context& context, int64_t rows, const std::vector<scaletrain::Field>& fields,
                                   const scaletrain::Fill& fill) {
    return new scaletrain::Data(scaletrain::Data::callback(context, rows, fields, fill.function));
  }
}
%newobject scaletrain::DataSplit::take_training;
%newobject scaletrain::DataSplit::take_validation;
%include <scaletrain/data.hpp>
%inline %{
namespace scaletrain {
/// The two results of Data::split, each to be taken once.
class DataSplit {
 public:
  DataSplit(const Data& data, double fraction, int64_t seed) : parts_(data.split(fraction, seed)) {}
  Data* take_training() { return new Data(std::move(parts_.first)); }
  Data* take_validation() { return new Data(std::move(parts_.second)); }

 private:
  std::pair<Data, Data> parts_;
};
}  // namespace scaletrain
%}

// pending.hpp
%ignore scaletrain::Pending::wait(std::chrono::milliseconds) const;
%extend scaletrain::Pending {
  bool wait_for(int64_t milliseconds) { return $self->wait(std::chrono::milliseconds(milliseconds)); }
}
%include <scaletrain/pending.hpp>

// model.hpp: streams are functions. ReadOptions are arguments; from[i] is renamed to into[i].
%ignore scaletrain::Rename;
%ignore scaletrain::ReadOptions;
%ignore scaletrain::Model::parameters;
%ignore scaletrain::Model::write(std::ostream&) const;
%ignore scaletrain::Model::read(std::istream&, const ReadOptions&) const;
%ignore scaletrain::Model::read(std::istream&) const;
%ignore scaletrain::Model::read(const ReadFunction&) const;
%ignore scaletrain::Model::read(const ReadFunction&, const ReadOptions&) const;
%ignore scaletrain::Model::read(const ReadFunction&, const ReadOptions&, ReadReport&) const;
%ignore scaletrain::Model::read_file;
%ignore scaletrain::Model::load;
%rename(get_parameter) scaletrain::Model::get(const std::string&, const View&) const;
%rename(set_parameter) scaletrain::Model::set;
%{
namespace {
scaletrain::ReadOptions load_options(bool partial, const std::vector<std::string>& from, const std::vector<std::string>& into,
                                     const std::vector<std::string>& names) {
  scaletrain::ReadOptions options;
  options.partial = partial;
  for (size_t i = 0; i < from.size() && i < into.size(); ++i) options.renames.push_back({from[i], into[i]});
  options.names = names;
  return options;
}
}  // namespace
%}
%include <scaletrain/model.hpp>
%extend scaletrain::Model {
  scaletrain::ReadReport read_from(const scaletrain::ReadFunction& read, bool partial, const std::vector<std::string>& from,
                                   const std::vector<std::string>& into, const std::vector<std::string>& names) {
    return $self->read(read, load_options(partial, from, into, names));
  }
  scaletrain::ReadReport read_from_file(const std::string& path, bool partial, const std::vector<std::string>& from,
                                        const std::vector<std::string>& into, const std::vector<std::string>& names) {
    return $self->read_file(path, load_options(partial, from, into, names));
  }
  scaletrain::LoadReport load_from(const scaletrain::Checkpoint& checkpoint, const std::string& name, bool partial,
                                   const std::vector<std::string>& from, const std::vector<std::string>& into,
                                   const std::vector<std::string>& names) {
    return $self->load(checkpoint, name, load_options(partial, from, into, names));
  }
}
namespace scaletrain {
void convert(const View& from, const View& to);  // view.hpp
}
%inline %{
namespace scaletrain {
/// gpt2_names() as a JSON object.
std::string gpt2_names_json() {
  std::string json;
  for (const auto& [from, to] : gpt2_names()) json.append(json.empty() ? "{" : ",").append("\"" + from + "\":\"" + to + "\"");
  return json + "}";
}
}  // namespace scaletrain
%}

%include <scaletrain/plan.hpp>

// trainer.hpp: while a step is not complete there is no report (null).
%ignore scaletrain::Metric;
%ignore scaletrain::Trainer::advance;
%ignore scaletrain::Trainer::step() const;
%ignore scaletrain::Trainer::backward() const;
%ignore scaletrain::Trainer::run(int64_t) const;
%ignore scaletrain::Trainer::resume;
%newobject scaletrain::Trainer::work;
%include <scaletrain/trainer.hpp>
%extend scaletrain::Trainer {
  scaletrain::StepReport* work(const scaletrain::Views& batch, int64_t nanoseconds) {
    const std::optional<scaletrain::StepReport> whole = $self->advance(batch, std::chrono::nanoseconds(nanoseconds));
    return whole ? new scaletrain::StepReport(*whole) : nullptr;
  }
  scaletrain::LoadReport resume_from(const scaletrain::Checkpoint& checkpoint, const std::string& name, bool partial,
                                     const std::vector<std::string>& from, const std::vector<std::string>& into,
                                     const std::vector<std::string>& names) {
    return $self->resume(checkpoint, name, load_options(partial, from, into, names));
  }
}

// checkpoint.hpp
%ignore scaletrain::Checkpoint::load;
%ignore scaletrain::Checkpoint::wait(std::chrono::milliseconds) const;
%extend scaletrain::Checkpoint {
  bool wait_for(int64_t milliseconds) { return $self->wait(std::chrono::milliseconds(milliseconds)); }
  scaletrain::LoadReport load_to(const scaletrain::Views& to, const std::string& name, bool overwrite, bool partial,
                                 const std::vector<std::string>& from, const std::vector<std::string>& into,
                                 const std::vector<std::string>& names) {
    scaletrain::ReadOptions options = load_options(partial, from, into, names);
    options.overwrite = overwrite;
    return $self->load(to, name, options);
  }
}
%include <scaletrain/checkpoint.hpp>

%ignore scaletrain::Predictor::generate(const std::vector<int32_t>&, const GenerateOptions&) const;
%include <scaletrain/predictor.hpp>

// tensor.hpp: a device is its type and its number.
%ignore scaletrain::DlpackDevice;
%ignore scaletrain::Tensor::dlpack_device;
%ignore scaletrain::Tensor::to_dlpack(int64_t) const;
%extend scaletrain::Tensor {
  int32_t device_type() { return $self->dlpack_device().type; }
  int32_t device_index() { return $self->dlpack_device().index; }
}
%include <scaletrain/tensor.hpp>

// gemm.hpp: an epilogue is arguments of run.
%ignore scaletrain::Epilogue;
%ignore scaletrain::Gemm::run;
%{
namespace {
scaletrain::Epilogue epilogue_of(const scaletrain::View* bias, const scaletrain::View* pre_activation, scaletrain::Activation activation,
                                 const scaletrain::View* derivative_at, const scaletrain::View* residual,
                                 const scaletrain::View* column_sums) {
  const auto given = [](const scaletrain::View* view) { return view ? std::optional<scaletrain::View>(*view) : std::nullopt; };
  return {given(bias), given(pre_activation), activation, given(derivative_at), given(residual), given(column_sums)};
}
}  // namespace
%}
%include <scaletrain/gemm.hpp>
%extend scaletrain::Gemm {
  void multiply(float alpha, const scaletrain::View& a, const scaletrain::View& b, float beta, const scaletrain::View& c,
                scaletrain::Activation activation, const scaletrain::View* bias, const scaletrain::View* pre_activation,
                const scaletrain::View* derivative_at, const scaletrain::View* residual, const scaletrain::View* column_sums) {
    $self->run(alpha, a, b, beta, c, epilogue_of(bias, pre_activation, activation, derivative_at, residual, column_sums));
  }
  void multiply_packed(float alpha, const scaletrain::View& a, const scaletrain::PackedMatrix& b, float beta, const scaletrain::View& c,
                       scaletrain::Activation activation, const scaletrain::View* bias, const scaletrain::View* pre_activation,
                       const scaletrain::View* derivative_at, const scaletrain::View* residual, const scaletrain::View* column_sums) {
    $self->run(alpha, a, b, beta, c, epilogue_of(bias, pre_activation, activation, derivative_at, residual, column_sums));
  }
}

%include <scaletrain/loss_scaler.hpp>
%rename(step_scaled) scaletrain::Optimizer::step(const LossScaler&, const std::vector<View>&) const;
%include <scaletrain/optimizer.hpp>
%include <scaletrain/accumulator.hpp>

// distributed_sampler.hpp: rows are written to the language's array.
%ignore scaletrain::SampledRows;
%ignore scaletrain::DistributedSampler::next;
%ignore scaletrain::DistributedSampler::next_to;
%include <scaletrain/distributed_sampler.hpp>
%inline %{
namespace scaletrain {
/// DistributedSampler::next, into an i64 array.
class NextRows {
 public:
  NextRows(const DistributedSampler& sampler, const View& to) : taken_(sampler.next_to(to)) {}
  int64_t own() const { return taken_.first; }
  int64_t all() const { return taken_.second; }

 private:
  std::pair<int64_t, int64_t> taken_;
};
}  // namespace scaletrain
%}

// communicator.hpp: the ranks of a group are taken one by one, a share is its begin and end, a host's group is its address.
%ignore scaletrain::Transport;
%ignore scaletrain::Communicator::of_host;
%newobject scaletrain::Communicator::host_at;
%ignore scaletrain::Share;
%ignore scaletrain::Communicator::local;
%ignore scaletrain::Communicator::share;
%ignore scaletrain::Communicator::split(int32_t, int32_t) const;
%ignore scaletrain::Communicator::duplicate() const;
%extend scaletrain::Communicator {
  static scaletrain::Communicator* host_at(const scaletrain::Context& context, const std::string& transport, int64_t group,
                                           const scaletrain::CommunicatorOptions& options) {
    const auto* const address = reinterpret_cast<const void*>(static_cast<intptr_t>(group));
    return new scaletrain::Communicator(scaletrain::Communicator::of_host(context, transport, address, options));
  }
  int64_t share_begin(int64_t elements, int32_t rank) { return $self->share(elements, rank).begin; }
  int64_t share_end(int64_t elements, int32_t rank) {
    const scaletrain::Share share = $self->share(elements, rank);
    return share.begin + share.count;
  }
}
%include <scaletrain/communicator.hpp>
%include <scaletrain/data_parallel.hpp>
%rename(step_scaled) scaletrain::ShardedOptimizer::step(const LossScaler&, const std::vector<View>&) const;
%include <scaletrain/sharded_optimizer.hpp>

// pipeline.hpp: each language has its own StageWork, over the views.
%ignore scaletrain::StageWork;
%ignore scaletrain::Stage;
%include <scaletrain/pipeline.hpp>
%newobject scaletrain::LocalRanks::take;
%inline %{
namespace scaletrain {
/// The ranks of Communicator::local, each to be taken once.
class LocalRanks {
 public:
  LocalRanks(const Context& context, int32_t n, const CommunicatorOptions& options) : ranks_(Communicator::local(context, n, options)) {}
  Communicator* take(int32_t rank) { return new Communicator(std::move(ranks_.at(static_cast<size_t>(rank)))); }

 private:
  std::vector<Communicator> ranks_;
};
}  // namespace scaletrain
%}

#if defined(SWIGPYTHON)
%include "python/classes.i"
#elif defined(SWIGJAVA)
%include "java/classes.i"
#elif defined(SWIGCSHARP)
%include "csharp/classes.i"
#endif
