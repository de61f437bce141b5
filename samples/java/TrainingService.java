// A small HTTP service that trains in the background on the rows it receives, and predicts with the newest weights at any time.
//
//   java -cp scaletrain.jar TrainingService.java [PORT [INPUTS]] [--device NAME]    defaults 8080, 1, cpu; port 0 takes a free one
//   curl --data-binary @rows.csv localhost:8080/rows                    lines of x1,...,xN,y
//   curl 'localhost:8080/prediction?x=0.5'
//   curl localhost:8080/weights > model.safetensors                     streamed, not written to a disk
//   curl localhost:8080/status

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.FloatBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.scaletrain.Array;
import org.scaletrain.Batch;
import org.scaletrain.Context;
import org.scaletrain.ContextOptions;
import org.scaletrain.DType;
import org.scaletrain.Json;
import org.scaletrain.Library;
import org.scaletrain.Model;
import org.scaletrain.Predictor;
import org.scaletrain.Recipe;
import org.scaletrain.StepReport;
import org.scaletrain.Trainer;

class TrainingService implements AutoCloseable {
  static final int BATCH = 64, MOST_BODY_BYTES = 1 << 20, THREADS = 4, MOST_WAITING = 64;

  private final int inputs;
  private final Rows rows;
  private final Context context;
  private final Model model;
  private final Trainer trainer;
  private final Predictor predictor;
  private final HttpServer server;
  private final ThreadPoolExecutor answering;
  private final Thread training = new Thread(this::train, "training");
  private volatile StepReport newest;
  private volatile RuntimeException failure;

  TrainingService(int port, int inputs, String device) throws IOException {
    this.inputs = inputs;
    context = new Context(new ContextOptions().threads(1).device(device));
    rows = new Rows(inputs);
    model = Model.builtin(context, "mlp", Map.of("inputs", inputs, "hidden", new int[] {32, 32}, "outputs", 1), 1);
    trainer = new Trainer(model, new Recipe().batch(BATCH).lr(0.005).weightDecay(0));
    predictor = new Predictor(model);

    answering = new ThreadPoolExecutor(THREADS, THREADS, 0, TimeUnit.SECONDS, new ArrayBlockingQueue<>(MOST_WAITING));
    server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
    server.setExecutor(answering);
    on("POST", "/rows", this::takeRows);
    on("GET", "/prediction", this::predict);
    on("GET", "/weights", this::sendWeights);
    on("GET", "/status", this::tellStatus);
    server.start();
    training.start();
  }

  int port() {
    return server.getAddress().getPort();
  }

  /** Finishes running requests and the running step, then frees all objects. */
  @Override
  public void close() {
    server.stop(1);
    answering.shutdown();
    rows.end();
    try {
      answering.awaitTermination(10, TimeUnit.SECONDS);
      training.join();
    } catch (InterruptedException hurry) {
      Thread.currentThread().interrupt();
    }
    predictor.close();
    trainer.close();
    model.close();
    context.close();
  }

  /** The training thread. Steps and copies of weights wait for each other; predictions never wait. */
  private void train() {
    Array x = Array.allocate(DType.F32, BATCH, inputs), y = Array.allocate(DType.F32, BATCH, 1);
    Batch batch = Batch.of("x", x, "y", y);
    try {
      while (rows.draw(BATCH, x.floats(), y.floats()))
        synchronized (trainer) {
          newest = trainer.step(batch);
        }
    } catch (RuntimeException thrown) {
      failure = thrown;
    }
  }

  private void takeRows(HttpExchange exchange) throws IOException {
    byte[] body = exchange.getRequestBody().readNBytes(MOST_BODY_BYTES + 1);
    if (body.length > MOST_BODY_BYTES) {
      exchange.getRequestBody().readNBytes(MOST_BODY_BYTES);  // a client that is still sending would not read the error
      throw new Refused(413, "at most " + MOST_BODY_BYTES + " bytes at once");
    }
    String[] lines = new String(body, StandardCharsets.UTF_8).strip().split("\\R");
    float[][] taken = new float[lines.length][];
    for (int i = 0; i < lines.length; ++i) taken[i] = numbers(lines[i], inputs + 1, "line " + (i + 1));
    rows.add(taken);
    answer(exchange, 200, "application/json", Json.text(Map.of("taken", taken.length)));
  }

  private void predict(HttpExchange exchange) throws IOException {
    String query = exchange.getRequestURI().getQuery();
    if (query == null || !query.startsWith("x=")) throw new Refused(400, "ask for /prediction?x=x1,...,xN");
    float[] x = numbers(query.substring(2), inputs, "x"), prediction = new float[1];
    predictor.refresh();  // takes the weights of the newest finished step, even during one
    predictor.run(Batch.of("x", Array.of(x, 1, inputs)), Batch.of("prediction", Array.of(prediction, 1, 1)));
    answer(exchange, 200, "text/plain", String.valueOf(prediction[0]));
  }

  private void sendWeights(HttpExchange exchange) throws IOException {
    Model now;
    synchronized (trainer) {
      now = model.copy();  // so that a slow client does not block training
    }
    try (now; OutputStream body = exchange.getResponseBody()) {
      exchange.getResponseHeaders().set("Content-Type", "application/octet-stream");
      exchange.getResponseHeaders().set("Model-Digest", now.digest());
      exchange.sendResponseHeaders(200, 0);
      now.write(body);
    }
  }

  private void tellStatus(HttpExchange exchange) throws IOException {
    Map<String, Object> status = new LinkedHashMap<>();
    StepReport step = newest;
    status.put("rows", rows.size());
    status.put("steps", step == null ? 0 : step.step());
    status.put("loss", step == null ? null : step.loss());
    status.put("failure", failure == null ? null : failure.getMessage());
    answer(exchange, 200, "application/json", Json.text(status));
  }

  /** A refused request; the message is sent to the client. */
  static class Refused extends RuntimeException {
    final int status;

    Refused(int status, String why) {
      super(why);
      this.status = status;
    }
  }

  interface Answer {
    void to(HttpExchange exchange) throws IOException;
  }

  private void on(String method, String path, Answer answer) {
    server.createContext(path, exchange -> {
      try {
        if (!exchange.getRequestURI().getPath().equals(path)) throw new Refused(404, "there are /rows, /prediction, /weights, /status");
        if (!exchange.getRequestMethod().equals(method)) throw new Refused(405, path + " takes " + method);
        answer.to(exchange);
      } catch (Refused refused) {
        answer(exchange, refused.status, "text/plain", refused.getMessage());
      } catch (RuntimeException fault) {
        answer(exchange, 500, "text/plain", String.valueOf(fault.getMessage()));
      } finally {
        exchange.close();
      }
    });
  }

  private static void answer(HttpExchange exchange, int status, String type, String text) throws IOException {
    byte[] bytes = (text + "\n").getBytes(StandardCharsets.UTF_8);
    exchange.getResponseHeaders().set("Content-Type", type);
    exchange.sendResponseHeaders(status, bytes.length);
    exchange.getResponseBody().write(bytes);
  }

  private static float[] numbers(String text, int count, String where) {
    String[] words = text.split(",", -1);
    if (words.length != count) throw new Refused(400, where + ": expected " + count + " numbers, got " + words.length);
    float[] numbers = new float[count];
    try {
      for (int i = 0; i < count; ++i) numbers[i] = Float.parseFloat(words[i]);
    } catch (NumberFormatException no) {
      throw new Refused(400, where + ": not a number: " + no.getMessage());
    }
    for (float number : numbers) if (!Float.isFinite(number)) throw new Refused(400, where + ": numbers must be finite, got " + number);
    return numbers;
  }

  /** The newest rows, and the number of steps that remain to be trained on them. */
  static class Rows {
    static final int MOST = 100_000, STEPS_AFTER_ROWS = 5_000;

    private final int inputs;
    private final float[][] rows = new float[MOST][];
    private final Random random = new Random(1);
    private long added;
    private int stepsLeft;
    private boolean over;

    Rows(int inputs) {
      this.inputs = inputs;
    }

    synchronized void add(float[][] newest) {
      for (float[] row : newest) rows[(int) (added++ % MOST)] = row;
      stepsLeft = STEPS_AFTER_ROWS;
      notifyAll();
    }

    synchronized int size() {
      return (int) Math.min(added, MOST);
    }

    /** Waits for rows and draws a batch of them; false when the service is closed. */
    synchronized boolean draw(int count, FloatBuffer x, FloatBuffer y) {
      try {
        while (stepsLeft == 0 && !over) wait();
      } catch (InterruptedException ended) {
        return false;
      }
      --stepsLeft;
      for (int i = 0; i < count && !over; ++i) {
        float[] row = rows[random.nextInt(size())];
        x.put(row, 0, inputs);
        y.put(row[inputs]);
      }
      return !over;
    }

    synchronized void end() {
      over = true;
      notifyAll();
    }
  }

  public static void main(String[] arguments) throws IOException {
    System.setProperty("sun.net.httpserver.maxReqTime", "10");  // seconds that a client may take to send or read
    System.setProperty("sun.net.httpserver.maxRspTime", "60");
    int option = List.of(arguments).indexOf("--device"), numbers = option < 0 ? arguments.length : option;
    if (numbers > 2 || (option >= 0 && option != arguments.length - 2)) {
      System.err.println("usage: TrainingService [PORT [INPUTS]] [--device NAME]");
      System.exit(2);
    }
    int port = numbers > 0 ? Integer.parseInt(arguments[0]) : 8080, inputs = numbers > 1 ? Integer.parseInt(arguments[1]) : 1;
    TrainingService service = new TrainingService(port, inputs, option < 0 ? "cpu" : arguments[option + 1]);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      service.close();
      System.out.println("ended; " + Library.liveHandles("trainer") + " trainers are left");
    }));
    System.out.println("listening on http://localhost:" + service.port());
  }
}
