import static java.nio.charset.StandardCharsets.UTF_8;
import static org.comm4j.api.ReduceOp.SUM;

import java.io.BufferedReader;
import java.io.Console;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import java.util.zip.GZIPInputStream;
import org.comm4j.api.CommConfig;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.Reduction;

/// Learns to read handwritten digits, on all ranks together (data-parallel softmax regression).
///
///     ./comm-cli run -n 4 examples/DigitsTraining.java
///
/// Every rank has the same weights and a share of the images. In each step it computes the gradient
/// of its share, [Communicator#allReduce(float[], org.comm4j.api.ReduceOp)] adds up the gradients,
/// and every rank takes the same step: no weights are ever sent. Since the ranks get the same bits
/// their weights stay equal, which the checksums show. Since it asks for ordered reduction they are
/// equal on every backend too. Another number of ranks adds up in another order and may end with other bits.
public final class DigitsTraining {
  private static final int STEPS = 200;
  private static final float LEARNING_RATE = 0.3f;
  private static final float MOMENTUM = 0.9f;

  private static final int CLASSES = 10;
  private static final int INPUTS = 64 + 1; // 8 x 8 pixels, and a constant for the bias
  private static final int WEIGHTS = CLASSES * INPUTS;

  private final Communicator comm;
  private final PrintStream out;
  private final List<float[]> training;
  private final List<float[]> heldOut;
  private final float[] weights = new float[WEIGHTS];
  private long communicationNs;

  /// What came out: the share of the held-out images that were read rightly, and what the weights
  /// are.
  record Result(double accuracy, String checksum) {}

  public static void main(String[] args) {
    // ordered: the sums are the same bits on every backend
    CommConfig config =
        CommConfig.fromEnvironment(System.getenv()).toBuilder()
            .reduction(Reduction.ORDERED)
            .build();
    try (Communicator comm = Communicators.open(config)) {
      train(comm);
    }
  }

  static Result train(Communicator comm) {
    return new DigitsTraining(comm).run();
  }

  private DigitsTraining(Communicator comm) {
    this.comm = comm;
    out = comm.rank() == 0 ? System.out : new PrintStream(OutputStream.nullOutputStream());
    List<float[]> all = readImages();
    training = share(all, IntStream.range(0, all.size()).filter(i -> i % 5 != 0));
    heldOut = share(all, IntStream.range(0, all.size()).filter(i -> i % 5 == 0));
  }

  /// Deals images to the ranks like cards.
  private List<float[]> share(List<float[]> all, IntStream indices) {
    int[] dealt = indices.toArray();
    return IntStream.range(0, dealt.length)
        .filter(i -> i % comm.size() == comm.rank())
        .mapToObj(i -> all.get(dealt[i]))
        .toList();
  }

  private Result run() {
    long startNs = System.nanoTime();
    long images = comm.allReduce(training.size(), SUM);
    float[] gradient = new float[WEIGHTS + 1]; // the last element is the loss
    float[] velocity = new float[WEIGHTS];
    out.printf("%d rank(s) over %s learn from %d images%n", comm.size(), comm.backend(), images);

    for (int step = 1; step <= STEPS; step++) {
      Arrays.fill(gradient, 0);
      training.forEach(image -> addGradient(image, gradient));
      addUp(gradient);
      for (int i = 0; i < WEIGHTS; i++) {
        velocity[i] = MOMENTUM * velocity[i] + gradient[i] / images;
        weights[i] -= LEARNING_RATE * velocity[i];
      }
      showProgress(step, gradient[WEIGHTS] / images);
    }

    long right = comm.allReduce(heldOut.stream().filter(this::isReadRightly).count(), SUM);
    var result = new Result((double) right / comm.allReduce(heldOut.size(), SUM), checksum());
    out.printf(
        Locale.ROOT,
        "%.2f s in all, %.2f s of them in communication (waiting for slower ranks included)%n",
        (System.nanoTime() - startNs) * 1e-9,
        communicationNs * 1e-9);
    out.printf(Locale.ROOT, "accuracy %.1f%n", 100 * result.accuracy());
    System.out.println("checksum " + result.checksum());
    return result;
  }

  /// The one line that makes the program parallel.
  private void addUp(float[] gradient) {
    long startNs = System.nanoTime();
    comm.allReduce(gradient, SUM);
    communicationNs += System.nanoTime() - startNs;
  }

  private void addGradient(float[] image, float[] gradient) {
    float[] probabilities = probabilities(image);
    gradient[WEIGHTS] -= (float) StrictMath.log(Math.max(probabilities[digit(image)], 1e-30f));
    for (int c = 0; c < CLASSES; c++) {
      float error = probabilities[c] - (c == digit(image) ? 1 : 0);
      for (int i = 0; i < INPUTS; i++) {
        gradient[c * INPUTS + i] += error * image[i];
      }
    }
  }

  /// How likely the image is which digit. StrictMath has the same bits on every machine.
  private float[] probabilities(float[] image) {
    float[] scores = new float[CLASSES];
    float highest = Float.NEGATIVE_INFINITY;
    for (int c = 0; c < CLASSES; c++) {
      for (int i = 0; i < INPUTS; i++) {
        scores[c] += weights[c * INPUTS + i] * image[i];
      }
      highest = Math.max(highest, scores[c]);
    }
    float sum = 0;
    for (int c = 0; c < CLASSES; c++) {
      scores[c] = (float) StrictMath.exp(scores[c] - highest);
      sum += scores[c];
    }
    for (int c = 0; c < CLASSES; c++) {
      scores[c] /= sum;
    }
    return scores;
  }

  private boolean isReadRightly(float[] image) {
    float[] probabilities = probabilities(image);
    return IntStream.range(0, CLASSES)
        .allMatch(i -> probabilities[i] <= probabilities[digit(image)]);
  }

  private String checksum() {
    ByteBuffer bytes = ByteBuffer.allocate(WEIGHTS * Float.BYTES);
    bytes.asFloatBuffer().put(weights);
    var crc = new CRC32C();
    crc.update(bytes);
    return "%08x".formatted(crc.getValue());
  }

  /// A bar on a terminal, which `comm-cli run` tells of where it stands between, else a line now
  /// and then.
  private void showProgress(int step, float loss) {
    boolean terminal =
        System.getenv("COMM4J_TERMINAL") != null
            || Optional.ofNullable(System.console()).map(Console::isTerminal).orElse(false);
    if (terminal) {
      int done = 40 * step / STEPS;
      String bar = "#".repeat(done) + ".".repeat(40 - done);
      char end = step < STEPS ? '\r' : '\n';
      out.printf(Locale.ROOT, "%s step %d of %d, loss %.3f%c", bar, step, STEPS, loss, end);
      out.flush();
    } else if (step % 50 == 0) {
      out.printf(Locale.ROOT, "step %d of %d, loss %.3f%n", step, STEPS, loss);
    }
  }

  private static List<float[]> readImages() {
    var resource = DigitsTraining.class.getResourceAsStream("/digits.csv.gz");
    Objects.requireNonNull(resource, "digits.csv.gz is not on the class path");
    try (var lines =
        new BufferedReader(new InputStreamReader(new GZIPInputStream(resource), UTF_8))) {
      return lines.lines().map(DigitsTraining::parse).toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// An image: its inputs, and behind them its digit.
  private static float[] parse(String line) {
    String[] numbers = line.split(",", -1);
    float[] image = new float[INPUTS + 1];
    for (int i = 0; i < INPUTS - 1; i++) {
      image[i] = Integer.parseInt(numbers[i]) / 16f;
    }
    image[INPUTS - 1] = 1;
    image[INPUTS] = Integer.parseInt(numbers[INPUTS - 1]);
    return image;
  }

  private static int digit(float[] image) {
    return (int) image[INPUTS];
  }
}
