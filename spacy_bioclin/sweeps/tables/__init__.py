"""Tables of a sweep: in the layouts of the papers, and in more detail."""

from .by_task import make_blue_table as make_blue_table
from .by_task import make_lewis_table as make_lewis_table
from .by_task import make_means_table as make_means_table
from .carrino import make_carrino_table as make_carrino_table
from .details import make_comparison_table as make_comparison_table
from .details import make_failure_table as make_failure_table
from .details import make_rate_table as make_rate_table
from .details import make_search_table as make_search_table
from .details import make_spread_table as make_spread_table
from .mulyar import make_mulyar_table as make_mulyar_table
from .table import OURS as OURS
from .table import Table as Table
from .table import format_rate as format_rate
from .table import to_markdown as to_markdown
