// Data: rows for training, in an endless shuffled stream that depends on the seed only.
#pragma once

#include <scaletrain/data.h>

#include <scaletrain/context.hpp>
#include <string>
#include <utility>
#include <vector>

namespace scaletrain {

/// A field of rows that the host makes; dims are those of one row.
struct Field {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> dims;
};

/// Writes rows row_ids[0..count) into the views, in the order of the fields, each [count, dims...]. An exception ends the step that needed
/// the rows and is rethrown there.
using FillFunction = std::function<void(const int64_t* row_ids, int64_t count, const std::vector<View>& views)>;

/// Releases borrowed memory; called once, from any thread.
using ReleaseFunction = std::function<void()>;

namespace detail {

/// Callbacks, captures and views that the library holds until it releases them.
struct Loan {
  ReleaseFunction release;
  FillFunction fill;
  std::shared_ptr<Fault> fault = std::make_shared<Fault>();
  std::vector<View> views;  // reused: fills come one at a time

  static void end(void* user) {
    const std::unique_ptr<Loan> loan(static_cast<Loan*>(user));
    Fault unseen;  // no call is left that could throw it
    if (loan->release) shielded(unseen, [&] { loan->release(); });
  }
  static st_status rows(void* user, int64_t k, const int64_t* row_ids, int64_t n, const st_view* raw) {
    Loan& loan = *static_cast<Loan*>(user);
    return shielded(*loan.fault, [&] {
      loan.views.clear();
      for (int64_t i = 0; i < n; ++i) loan.views.emplace_back(raw[i]);
      loan.fill(row_ids, k, loan.views);
    });
  }
};

}  // namespace detail

class Data : public detail::Handle<st_data, st_data_destroy> {
 public:
  /// A text file, a folder of them or a token file. json: {"context": 64}.
  static Data files(const Context& context, const std::string& path, const std::string& json) {
    Data data(detail::Access::host(context));
    data.done(st_data_files(context.get(), path.c_str(), json.empty() ? nullptr : json.c_str(), data.out()));
    return data;
  }
  /// The host's arrays, not copied; their first dimension is `rows`. They must not change until release is called, once, from any thread,
  /// when the data and everything that uses it are gone; not if this throws. Its exceptions are dropped.
  static Data arrays(const Context& context, int64_t rows, const Views& arrays, const ReleaseFunction& release) {
    Data data(detail::Access::host(context));
    auto loan = std::make_unique<detail::Loan>();
    loan->release = release;
    data.take(st_data_arrays(context.get(), rows, arrays.size(), arrays.raw(), detail::Loan::end, loan.get(), data.out()), loan);
    return data;
  }
  static Data arrays(const Context& context, int64_t rows, const Views& arrays) {
    return Data::arrays(context, rows, arrays, ReleaseFunction());
  }
  /// Rows made on demand. `fill` and its captures are destroyed when the data and everything that uses it are gone.
  static Data callback(const Context& context, int64_t rows, const std::vector<Field>& fields, const FillFunction& fill) {
    Data data(detail::Access::host(context));
    auto loan = std::make_unique<detail::Loan>();
    loan->fill = fill;
    std::vector<st_field> raw;
    for (const Field& field : fields)
      raw.push_back({field.name.c_str(), static_cast<st_dtype>(field.dtype), static_cast<int32_t>(field.dims.size()), field.dims.data()});
    data.fault_ = loan->fault;
    data.take(st_data_callback(context.get(), rows, static_cast<int64_t>(raw.size()), raw.data(), loan->fill ? detail::Loan::rows : nullptr,
                               detail::Loan::end, loan.get(), data.out()),
              loan);
    return data;
  }

  /// Returns training and validation data; `fraction` is for validation.
  std::pair<Data, Data> split(double fraction, int64_t seed) const {
    std::pair<Data, Data> parts{Data(host()), Data(host())};
    parts.first.fault_ = parts.second.fault_ = fault_;
    done(st_data_split(get(), fraction, seed, parts.first.out(), parts.second.out()));
    return parts;
  }
  int64_t rows() const {
    int64_t rows = 0;
    done(st_data_rows(get(), &rows));
    return rows;
  }
  int64_t vocabulary() const {
    int64_t vocabulary = 0;
    done(st_data_vocabulary(get(), &vocabulary));
    return vocabulary;
  }
  /// Loss on `validation`, in nats a token, of a bigram table counted on this data.
  double bigram_loss(const Data& validation) const {
    double loss = 0;
    done(st_data_bigram_loss(get(), validation.get(), &loss));
    return loss;
  }

 private:
  friend class Trainer;
  explicit Data(const std::shared_ptr<detail::Host>& host) : Handle(host) {}
  void take(st_status status, std::unique_ptr<detail::Loan>& loan) const {
    if (status == ST_OK) static_cast<void>(loan.release());  // the library owns it, whatever done() throws
    done(status);
  }
  std::shared_ptr<detail::Fault> fault_;  // of fill
};

}  // namespace scaletrain
