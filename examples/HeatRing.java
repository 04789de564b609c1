import static org.comm4j.api.ReduceOp.MAX;
import static org.comm4j.api.ReduceOp.SUM;

import java.io.OutputStream;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.comm4j.api.Collective;
import org.comm4j.api.CommData;
import org.comm4j.api.Communicator;
import org.comm4j.api.Communicators;
import org.comm4j.api.PointToPoint;
import org.comm4j.api.Request;

/// How heat spreads in two rings, one of copper and one of iron: messages between neighbours,
/// groups, and calls that are on their way while the program computes.
///
///     ./comm-cli run -n 4 examples/HeatRing.java
///
/// Half of the ranks compute each ring. A rank has an arc of it, and to go one step it needs the
/// outermost cell of either neighbour. It starts the exchange of these cells, computes what does
/// not need them, and only then waits.
public final class HeatRing {
  private static final List<String> METALS = List.of("copper", "iron");
  private static final double[] DIFFUSION = {0.45, 0.09}; // cells² per step
  private static final int CELLS = 1000;
  private static final int STEPS = 4000;
  private static final int CHECK_STEPS = 1000;
  private static final double HEAT = 100;

  // A ring of two has the same neighbour on both sides: tags tell the two messages apart.
  private static final int TO_LEFT = 0;
  private static final int TO_RIGHT = 1;

  private final Communicator ring;
  private final PrintStream out;
  private final int left;
  private final int right;
  private final int count;
  private final double diffusion;
  private double[] cells; // this rank's are 1..count; 0 and count + 1 are copies of the neighbours'
  private double[] next;

  /// What came out: all heat of a ring, and how hot its hottest cell is.
  record Result(double heat, double hottest) {}

  public static void main(String[] args) {
    try (Communicator world = Communicators.open()) {
      run(world);
    }
  }

  static Result run(Communicator world) {
    int metal = world.rank() % METALS.size();
    // ranks of one colour come together, in the order of their keys
    try (Communicator ring = world.split(metal, world.rank()).orElseThrow()) {
      Result result = new HeatRing(ring, DIFFUSION[metal]).run(METALS.get(metal));
      world.barrier();
      return result;
    }
  }

  private HeatRing(Communicator ring, double diffusion) {
    this.ring = ring;
    out = ring.rank() == 0 ? System.out : new PrintStream(OutputStream.nullOutputStream());
    this.diffusion = diffusion;
    left = Math.floorMod(ring.rank() - 1, ring.size());
    right = (ring.rank() + 1) % ring.size();
    count = CELLS * (ring.rank() + 1) / ring.size() - CELLS * ring.rank() / ring.size();
    cells = new double[count + 2];
    next = new double[count + 2];
    if (ring.rank() == 0) {
      cells[1] = HEAT;
    }
  }

  private Result run(String metal) {
    double[] sum = new double[1];
    Request check = startSum(sum);
    for (int step = 1; step <= STEPS; step++) {
      step();
      if (step % CHECK_STEPS == 0) {
        check.await(); // was on its way for that many steps
        out.printf(
            Locale.ROOT, "%s after %d steps: heat %.6f%n", metal, step - CHECK_STEPS, sum[0]);
        check = startSum(sum);
      }
    }
    check.await();
    double hottest = ring.allReduce(Arrays.stream(cells, 1, count + 1).max().orElse(0), MAX);
    out.printf(
        Locale.ROOT,
        "%s after %d steps: heat %.6f, at most %.3f a cell%n",
        metal,
        STEPS,
        sum[0],
        hottest);
    return new Result(sum[0], hottest);
  }

  /// Starts adding up the heat of the ring. It goes on in the background of later calls.
  private Request startSum(double[] sum) {
    double own = Arrays.stream(cells, 1, count + 1).sum();
    return ring.start(new Collective.AllReduce(CommData.of(own), CommData.of(sum), SUM));
  }

  private void step() {
    CommData data = CommData.of(cells);
    List<Request> exchange =
        List.of(
            ring.start(new PointToPoint.Receive(data.slice(0, 1), left, TO_RIGHT)),
            ring.start(new PointToPoint.Receive(data.slice(count + 1, 1), right, TO_LEFT)),
            ring.start(new PointToPoint.Send(data.slice(1, 1), left, TO_LEFT)),
            ring.start(new PointToPoint.Send(data.slice(count, 1), right, TO_RIGHT)));
    spread(2, count - 1);
    Request.waitAll(exchange);
    spread(1, 1);
    spread(count, count);

    double[] last = cells;
    cells = next;
    next = last;
  }

  private void spread(int from, int to) {
    for (int i = from; i <= to; i++) {
      next[i] = cells[i] + diffusion * (cells[i - 1] - 2 * cells[i] + cells[i + 1]);
    }
  }
}
