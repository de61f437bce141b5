package org.scaletrain.tests;

import static org.junit.jupiter.api.Assertions.*;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.*;
import java.net.URI;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.scaletrain.*;

/** Tests the application samples/java/TrainingService.java as a client. */
@Timeout(180)
class TrainingServiceTest {
  static final Duration PATIENCE = Duration.ofSeconds(30);

  @TempDir
  static Path classes;

  private final HttpClient client = HttpClient.newBuilder().connectTimeout(PATIENCE).build();
  private Process service;
  private BufferedReader said;
  private String address;

  @BeforeEach
  void start() throws IOException {
    start("0");
  }

  private void run(String... words) throws IOException {
    service = JavaProgram.compiled(Path.of(System.getenv("ST_SOURCES"), "samples/java/TrainingService.java"), classes, "TrainingService", words).start();
    said = service.inputReader(StandardCharsets.UTF_8);
  }

  private void start(String... words) throws IOException {
    run(words);
    String line = said.readLine();
    assertTrue(line != null && line.startsWith("listening on "), line);
    address = line.substring("listening on ".length());
  }

  @AfterEach
  void kill() throws InterruptedException {
    service.destroyForcibly().waitFor();
  }

  private HttpRequest.Builder at(String path) {
    return HttpRequest.newBuilder(URI.create(address + path)).timeout(PATIENCE);
  }

  private HttpResponse<String> get(String path) throws IOException, InterruptedException {
    return client.send(at(path).build(), HttpResponse.BodyHandlers.ofString());
  }

  private HttpResponse<String> post(String rows) throws IOException, InterruptedException {
    return client.send(at("/rows").POST(HttpRequest.BodyPublishers.ofString(rows)).build(), HttpResponse.BodyHandlers.ofString());
  }

  private double errorAt(double x) throws IOException, InterruptedException {
    return Math.abs(Double.parseDouble(get("/prediction?x=" + x).body()) - Math.sin(x));
  }

  private long steps() throws IOException, InterruptedException {
    return (Long) ((Map<?, ?>) Json.parse(get("/status").body().strip())).get("steps");
  }

  private void untilSteps(long wanted) throws IOException, InterruptedException {
    for (int i = 0; i < 1000 && steps() < wanted; ++i) Thread.sleep(20);
    assertTrue(steps() >= wanted, get("/status").body());
  }

  private static String sine() {
    return IntStream.range(0, 200).mapToObj(i -> -3 + 6 * i / 199.0).map(x -> x + "," + Math.sin(x)).collect(Collectors.joining("\n"));
  }

  @Test
  void answersImproveWhileItTrains() throws Exception {
    assertEquals(0, steps());
    double before = errorAt(1.5) + errorAt(-1.5);
    assertEquals("{\"taken\":200}\n", post(sine()).body());
    untilSteps(1000);
    double after = errorAt(1.5) + errorAt(-1.5);
    assertTrue(after < 0.1 && before > 3 * after, before + ", then " + after);
  }

  @Test
  void theStreamOfWeightsIsAModelOfTheSameDigest() throws Exception {
    List<String> digests = new ArrayList<>();
    try (Context context = new Context(); Model model = Model.builtin(context, "mlp", Map.of("inputs", 1, "hidden", new int[] {32, 32}, "outputs", 1), 7)) {
      String before = model.digest();
      for (int i = 0; i < 3; ++i) {
        post(sine());
        untilSteps(steps() + 10);
        HttpResponse<InputStream> weights = client.send(at("/weights").build(), HttpResponse.BodyHandlers.ofInputStream());
        try (InputStream body = weights.body()) {
          model.read(body);
        }
        digests.add(model.digest());
        assertEquals(weights.headers().firstValue("Model-Digest").orElseThrow(), model.digest());
      }
      assertNotEquals(before, digests.get(0));
    }
    assertEquals(3, digests.stream().distinct().count());  // it trained during the downloads
  }

  @Test
  void manyClientsAreServedAtOnce() throws Exception {
    post(sine());
    List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
    for (int i = 0; i < 40; ++i) asked.add(client.sendAsync(at("/prediction?x=0." + i).build(), HttpResponse.BodyHandlers.ofString()));
    for (CompletableFuture<HttpResponse<String>> answer : asked) {
      assertEquals(200, answer.get(30, TimeUnit.SECONDS).statusCode());
      assertTrue(Double.isFinite(Double.parseDouble(answer.get().body())));
    }
  }

  @Test
  void whatItCannotUseIsRefusedAndItGoesOn() throws Exception {
    assertEquals(400, post("1,2,3").statusCode());
    assertEquals(400, post("1,two").statusCode());
    assertEquals(400, post("1,NaN").statusCode());
    assertEquals(400, post("").statusCode());
    assertEquals(413, post("1,2\n".repeat(1 << 19)).statusCode());
    assertEquals(400, get("/prediction").statusCode());
    assertEquals(400, get("/prediction?x=1,2").statusCode());
    assertEquals(404, get("/prediction/more").statusCode());
    assertEquals(405, get("/rows").statusCode());
    assertEquals("line 1: expected 2 numbers, got 3\n", post("1,2,3").body());
    assertEquals(0, steps());
    assertEquals(200, post("1,2").statusCode());
    untilSteps(1);
  }

  @Test
  void itEndsCleanlyWhileItTrains() throws Exception {
    post(sine());
    untilSteps(5);
    service.toHandle().destroy();  // like Ctrl-C
    assertTrue(service.waitFor(60, TimeUnit.SECONDS));
    assertEquals("ended; 0 trainers are left", said.lines().collect(Collectors.joining("\n")));
    assertFalse(service.isAlive());
  }

  /** In build trees with the CUDA plug-in's simulated device. */
  @Test
  void itTrainsOnTheDeviceThatIsNamed() throws Exception {
    assumeTrue(System.getenv("SCALETRAIN_BACKEND_PATH") != null);
    kill();
    start("0", "1", "--device", "cuda-simulated");
    post(sine());
    untilSteps(20);
    Map<?, ?> status = (Map<?, ?>) Json.parse(get("/status").body().strip());
    assertNull(status.get("failure"));
    assertTrue(Double.isFinite((Double) status.get("loss")), status.toString());
    assertTrue(Double.isFinite(Double.parseDouble(get("/prediction?x=1.5").body())));
    service.toHandle().destroy();
    assertTrue(service.waitFor(60, TimeUnit.SECONDS));
    assertEquals("ended; 0 trainers are left", said.lines().collect(Collectors.joining("\n")));
  }

  @Test
  void aWrongDeviceEndsIt() throws Exception {
    kill();
    run("0", "--device", "no-such-device");
    assertTrue(service.waitFor(60, TimeUnit.SECONDS));
    assertEquals(1, service.exitValue());
    String error = said.lines().collect(Collectors.joining("\n"));
    assertTrue(error.contains("unknown device \"no-such-device\""), error);
    run("0", "--device");
    assertTrue(service.waitFor(60, TimeUnit.SECONDS));
    assertEquals(2, service.exitValue());
    assertEquals("usage: TrainingService [PORT [INPUTS]] [--device NAME]", said.readLine());
  }
}
