using System.Collections.Generic;
using System.IO;
using System.Runtime.InteropServices;
using System.Threading.Tasks;
using System;

namespace ScaleTrain {

/// <summary>A graph and its parameters, which can be read, set, copied and streamed.</summary>
/// <remarks>The trainer of a rank shards its model over the ranks with zero 3, stages or tensor. Then Get, Digest, Clone and the writes throw
/// <see cref="WrongStateException"/> at once, unless this rank has what they read. Those that end in Collective are called by all ranks, in the
/// same order, and give each the whole; they work for every model.</remarks>
public sealed class Model : Handle {
  internal readonly Native.Model native;
  internal override NativeHandle Safe { get { return native.handle; } }

  private Model(Native.Model made, NativeHandle parent) {
    native = made;
    Safe.KeepWhat(parent);
  }

  /// <summary>A model of a graph, with parameters initialised from the seed.</summary>
  [OfC("st_model_create")]
  public Model(Graph graph, long seed = 0) : this(new Native.Model(Given(graph, "graph").native, seed), graph.Safe) {}

  /// <summary>A built-in model: "gpt", "llama" or "mlp", for example
  /// <c>Model.Builtin(context, "gpt", 1, new { layers = 2, width = 64, heads = 2, context = 32 })</c>, or "gpt2" or "llama-hf", whose options are the
  /// keys of Hugging Face's config.json. Options are JSON text, a dictionary or an anonymous object.</summary>
  [OfC("st_model_builtin")]
  public static Model Builtin(Context context, string name, long seed = 0, object options = null) {
    return new Model(new Native.Model(Given(context, "context").native, Given(name, "name"), Json.OfOptions(options), seed), context.Safe);
  }

  /// <summary>A model with the same graph and a copy of the parameters.</summary>
  [OfC("st_model_clone")]
  public Model Clone() { return new Model(native.clone(), Safe); }

  /// <summary><see cref="Clone"/>, called by all ranks: a whole model on each.</summary>
  [OfC("st_model_clone_collective")]
  public Model CloneCollective() { return new Model(native.clone_collective(), Safe); }

  /// <summary>Descriptions of all parameters.</summary>
  [OfC("st_model_parameter", "st_model_parameter_count")]
  public IReadOnlyList<ParameterInfo> Parameters {
    get {
      var all = new ParameterInfo[native.parameter_count()];
      for (int i = 0; i < all.Length; ++i) all[i] = new ParameterInfo(native.parameter(i));
      return all;
    }
  }

  /// <summary>Copies a whole parameter to an array of the same dims, converted if necessary.</summary>
  [OfC("st_model_get")]
  public void Get(string name, View to) {
    using (Pins pins = Pins.Borrow(to, "to")) native.get_parameter(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a span, row by row.</summary>
  public unsafe void Get(string name, Span<float> to) {
    fixed (float* first = &MemoryMarshal.GetReference(to)) Get(name, View.At((IntPtr)first, DType.F32, DimsFor(name, to.Length)));
  }

  /// <summary>The same into an array with as many elements, row by row.</summary>
  public void Get(string name, float[] to) { Get(name, Given(to, "to").AsSpan()); }

  /// <summary>The same into a new float array.</summary>
  public float[] Get(string name) {
    ParameterInfo info = Info(name);
    var made = new float[info.Size];
    Get(name, View.Of(made).Reshape(info.Dims));
    return made;
  }

  /// <summary><see cref="Get(string, View)"/>, called by all ranks with the same name.</summary>
  [OfC("st_model_get_collective")]
  public void GetCollective(string name, View to) {
    using (Pins pins = Pins.Borrow(to, "to")) native.get_collective(Given(name, "name"), pins.First);
  }

  /// <summary>The same into a new float array.</summary>
  public float[] GetCollective(string name) {
    ParameterInfo info = Info(name);
    var made = new float[info.Size];
    GetCollective(name, View.Of(made).Reshape(info.Dims));
    return made;
  }

  /// <summary>Sets a whole parameter from a copy of an array of the same dims, converted if necessary.</summary>
  [OfC("st_model_set")]
  public void Set(string name, View from) {
    using (Pins pins = Pins.Borrow(from, "from")) native.set_parameter(Given(name, "name"), pins.First);
  }

  /// <summary>The same from a span, row by row.</summary>
  public unsafe void Set(string name, ReadOnlySpan<float> from) {
    fixed (float* first = &MemoryMarshal.GetReference(from)) Set(name, View.At((IntPtr)first, DType.F32, DimsFor(name, from.Length)));
  }

  /// <summary>The same from an array with as many elements, row by row.</summary>
  public void Set(string name, float[] from) { Set(name, Given(from, "from").AsSpan()); }

  /// <summary>this += t (from - this), for target networks and averages.</summary>
  [OfC("st_model_blend")]
  public void Blend(Model from, double t) { native.blend(Given(from, "from").native, t); }

  /// <summary>A digest of 32 hex digits. Two models are equal if their digests are.</summary>
  [OfC("st_model_digest")]
  public string Digest() {
    lock (Safe) return native.digest();
  }

  /// <summary><see cref="Digest"/>, called by all ranks.</summary>
  [OfC("st_model_digest_collective")]
  public string DigestCollective() {
    lock (Safe) return native.digest_collective();
  }

  /// <summary>Writes all parameters as a safetensors file.</summary>
  [OfC("st_model_write_file")]
  public void WriteFile(string path) { native.write_file(Given(path, "path")); }

  /// <summary>Writes the weights as they are now, in the background.</summary>
  public Pending BeginWriteFile(string path) { return new Pending(native.write_file_async(Given(path, "path")), Safe); }

  /// <summary>The same as a task.</summary>
  public Task WriteFileAsync(string path) { return BeginWriteFile(path).AsTask(); }

  /// <summary><see cref="WriteFile"/>, called by all ranks. Rank 0 writes; the paths of the others are ignored.</summary>
  [OfC("st_model_write_file_collective")]
  public void WriteFileCollective(string path) { native.write_file_collective(Given(path, "path")); }

  /// <summary><see cref="BeginWriteFile"/>, called by all ranks. Rank 0 writes; the paths of the others are ignored.</summary>
  public Pending BeginWriteFileCollective(string path) {
    return new Pending(native.write_file_async_collective(Given(path, "path")), Safe);
  }

  /// <summary>Reads parameters from a safetensors file, a folder with one, or the index of a sharded one. partial, rename and names are those of
  /// <see cref="Read"/>.</summary>
  [OfC("st_model_read_file")]
  public ReadReport ReadFile(string path, bool partial = false, IReadOnlyDictionary<string, string> rename = null, IReadOnlyCollection<string> names = null) {
    LoadOptions.Raw raw = LoadOptions.Of(partial, rename, names);
    return new ReadReport(native.read_from_file(Given(path, "path"), raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>Describes a safetensors file, a folder with one, or the index of a sharded one as JSON: files, metadata, and tensors of any dtype,
  /// even those that no call can read.</summary>
  [OfC("st_weights_inspect")]
  public static string InspectWeights(string path) {
    Loader.Require();
    return Native.native.inspect_weights(Given(path, "path"));
  }

  /// <summary>Writes all parameters as one safetensors stream, front to back. Exceptions of the stream are rethrown here.</summary>
  [OfC("st_model_write")]
  public void Write(Stream to) { native.write(Bridge.Strong(Safe, new StreamEnd(Given(to, "to")))); }

  /// <summary><see cref="Write"/>, called by all ranks. Each writes the whole stream.</summary>
  [OfC("st_model_write_collective")]
  public void WriteCollective(Stream to) { native.write_collective(Bridge.Strong(Safe, new StreamEnd(Given(to, "to")))); }

  /// <summary>Reads parameters from a safetensors stream. partial reads the tensors whose names match and reports the others. rename maps names
  /// of the stream to names of the model; "*", at most once in each, matches any text. names limits reading to parameters whose names match one
  /// of these patterns.</summary>
  [OfC("st_model_read")]
  public ReadReport Read(Stream from, bool partial = false, IReadOnlyDictionary<string, string> rename = null, IReadOnlyCollection<string> names = null) {
    Given(from, "from");
    LoadOptions.Raw raw = LoadOptions.Of(partial, rename, names);
    return new ReadReport(native.read_from(Bridge.Strong(Safe, new StreamEnd(from)), raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>Maps the names in Hugging Face's GPT-2 files to those of the model "gpt": <c>model.Read(file, rename: Model.Gpt2Names)</c> reads a
  /// model.safetensors as it is. Old files also hold causal masks; partial ignores them. The model "gpt2" takes the config.json next to the file
  /// as its options.</summary>
  public static IReadOnlyDictionary<string, string> Gpt2Names {
    get {
      Loader.Require();
      return Json.Texts(Native.native.gpt2_names_json());
    }
  }

  /// <summary>Reads only the weights from a checkpoint; a null name means the newest valid one.</summary>
  [OfC("st_model_load")]
  public LoadReport Load(Checkpoint checkpoint, string name = null, LoadOptions options = null) {
    Given(checkpoint, "checkpoint");
    LoadOptions.Raw raw = LoadOptions.Of(options);
    return new LoadReport(native.load_from(checkpoint.native, name ?? "", raw.Partial, raw.From, raw.Into, raw.Names));
  }

  /// <summary>The description of a parameter.</summary>
  public ParameterInfo Info(string name) { return ParameterInfo.Named(Parameters, name); }

  private long[] DimsFor(string name, int length) { return Info(name).DimsOf(length); }
}

}
