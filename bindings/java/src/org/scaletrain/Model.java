package org.scaletrain;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.scaletrain.internal.Native;
import org.scaletrain.internal.NativeLibrary;

/**
 * A graph and its parameters, which are initialised from a seed.
 *
 * <p>The trainer of a rank shards its model over the ranks with zero 3, stages or tensor. Then get, digest, copy and the writes throw {@link
 * WrongState} at once, unless this rank has what they read. Those that end in Collective are called by all ranks, in the same order, and give
 * each the whole; they work for every model.
 */
public final class Model extends Handle {
  final org.scaletrain.internal.Model raw;

  private Model(org.scaletrain.internal.Model raw, Object keeps) {
    this.raw = raw;
    raw.keeps = keeps;
  }

  /** Creates a model of a graph. The model does not need the graph afterwards. */
  @OfC("st_model_create")
  public Model(Graph graph, long seed) {
    this(new org.scaletrain.internal.Model(given(graph, "Model").raw, seed), graph.raw);
  }

  /**
   * A built-in model: {@code "gpt"}, {@code "llama"} or {@code "mlp"}, with options such as {@code layers}, {@code width}, {@code heads},
   * {@code context} and {@code hidden}; or {@code "gpt2"} or {@code "llama-hf"}, whose options are the keys of Hugging Face's config.json.
   */
  @OfC("st_model_builtin")
  public static Model builtin(Context context, String name, Map<String, ?> options, long seed) {
    return new Model(
        new org.scaletrain.internal.Model(given(context, "Model.builtin").raw, name, Json.options(options), seed), context.raw);
  }

  /** A model with the same graph and a copy of the parameters. */
  @OfC("st_model_clone")
  public Model copy() {
    return new Model(raw.clone(), raw);
  }

  /** {@link #copy}, called by all ranks: a whole model on each. */
  @OfC("st_model_clone_collective")
  public Model copyCollective() {
    return new Model(raw.clone_collective(), raw);
  }

  /** Descriptions of all parameters. */
  @OfC({"st_model_parameter", "st_model_parameter_count"})
  public List<ParameterInfo> parameters() {
    List<ParameterInfo> all = new ArrayList<>();
    synchronized (raw) {  // the library owns the names until they are copied
      for (long i = 0, n = raw.parameter_count(); i < n; ++i) all.add((ParameterInfo) raw.parameter(i));
    }
    return List.copyOf(all);
  }

  /** A whole parameter in f32, copied into a new {@code float[]}. */
  public Array get(String name) {
    Array to = floatsOf(name);
    get(name, to);
    return to;
  }

  /** {@link #get(String)}, called by all ranks with the same name. */
  public Array getCollective(String name) {
    Array to = floatsOf(name);
    getCollective(name, to);
    return to;
  }

  /** A whole parameter, copied and converted into {@code to}. */
  @OfC("st_model_get")
  public void get(String name, Array to) {
    raw.get_parameter(name, to);
  }

  /** {@link #get(String, Array)}, called by all ranks with the same name. */
  @OfC("st_model_get_collective")
  public void getCollective(String name, Array to) {
    raw.get_collective(name, to);
  }

  /** Sets a whole parameter from a copy of {@code values}, converted if necessary. */
  @OfC("st_model_set")
  public void set(String name, Array values) {
    raw.set_parameter(name, values);
  }

  /** this += t (from - this), for target networks and averages. */
  @OfC("st_model_blend")
  public void blend(Model from, double t) {
    raw.blend(given(from, "Model.blend").raw, t);
  }

  /** A digest of 32 hex digits. Two models are equal if their digests are. */
  @OfC("st_model_digest")
  public String digest() {
    return raw.digest();
  }

  /** {@link #digest}, called by all ranks. */
  @OfC("st_model_digest_collective")
  public String digestCollective() {
    return raw.digest_collective();
  }

  /** Writes all parameters as a safetensors file. */
  @OfC("st_model_write_file")
  public void writeFile(Path path) {
    raw.write_file(path.toString());
  }

  /** Writes the weights as they are now, in the background. */
  public Pending beginWriteFile(Path path) {
    return new Pending(raw.write_file_async(path.toString()), raw);
  }

  /** The same, returning a future. */
  public CompletableFuture<Void> writeFileAsync(Path path) {
    return beginWriteFile(path).toFuture();
  }

  /** {@link #writeFile}, called by all ranks. Rank 0 writes; the paths of the others are ignored. */
  @OfC("st_model_write_file_collective")
  public void writeFileCollective(Path path) {
    raw.write_file_collective(path.toString());
  }

  /** {@link #beginWriteFile}, called by all ranks. Rank 0 writes; the paths of the others are ignored. */
  public Pending beginWriteFileCollective(Path path) {
    return new Pending(raw.write_file_async_collective(path.toString()), raw);
  }

  /** Reads all parameters from a safetensors file, a folder with one, or the index of a sharded one. */
  public void readFile(Path path) {
    readFile(path, new ReadOptions());
  }

  /** Reads parameters from such a file, with these options. */
  @OfC("st_model_read_file")
  public ReadReport readFile(Path path, ReadOptions options) {
    return given(options, "Model.readFile").readFile(raw, given(path, "Model.readFile").toString());
  }

  /**
   * Describes a safetensors file, a folder with one, or the index of a sharded one as JSON: files, metadata, and tensors of any dtype, even
   * those that no call can read.
   */
  @OfC("st_weights_inspect")
  public static String inspectWeights(Path path) {
    NativeLibrary.require();
    return Native.inspect_weights(given(path, "Model.inspectWeights").toString());
  }

  /** Writes all parameters as one safetensors stream, front to back. Exceptions of the stream are rethrown as they are. */
  @OfC("st_model_write")
  public void write(OutputStream to) throws IOException {
    raw.write(given(to, "Model.write"));
  }

  /** {@link #write}, called by all ranks. Each writes the whole stream. */
  @OfC("st_model_write_collective")
  public void writeCollective(OutputStream to) throws IOException {
    raw.write_collective(given(to, "Model.writeCollective"));
  }

  /** Reads all parameters from a safetensors stream. */
  public void read(InputStream from) throws IOException {
    read(from, new ReadOptions());
  }

  /** Reads parameters from a safetensors stream, to its end. Exceptions of the stream are rethrown as they are. */
  @OfC("st_model_read")
  public ReadReport read(InputStream from, ReadOptions options) throws IOException {
    return options.read(raw, given(from, "Model.read"));
  }

  /**
   * Maps the names in Hugging Face's GPT-2 files to those of the model {@code "gpt"}: {@code model.readFile(file, new
   * ReadOptions().rename(Model.gpt2Names()))} reads a model.safetensors as it is. Old files also hold causal masks; {@link
   * ReadOptions#partial} ignores them. The model {@code "gpt2"} takes the config.json next to the file as its options.
   */
  @SuppressWarnings("unchecked")
  public static Map<String, String> gpt2Names() {
    NativeLibrary.require();
    return (Map<String, String>) Json.parse(Native.gpt2_names_json());
  }

  /** Reads only the weights, from the newest valid checkpoint. */
  public LoadReport load(Checkpoint checkpoint) {
    return load(checkpoint, null, new ReadOptions());
  }

  /** Reads only the weights, from the checkpoint with this name; null means the newest valid one. */
  @OfC("st_model_load")
  public LoadReport load(Checkpoint checkpoint, String name, ReadOptions options) {
    return given(options, "Model.load").load(raw, given(checkpoint, "Model.load").raw, name);
  }

  @Override
  @OfC("st_model_destroy")
  public void close() {
    synchronized (raw) {
      raw.close();
    }
  }

  private Array floatsOf(String name) {
    ArrayType type = type(name);
    return Array.of(new float[Math.toIntExact(type.size())], type.dims());
  }

  ArrayType type(String name) {
    for (ParameterInfo info : parameters()) if (info.name().equals(name)) return info.type();
    throw new NotFound("the model has no parameter \"" + name + "\"; Model.parameters lists all");
  }
}
