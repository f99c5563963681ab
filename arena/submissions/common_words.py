"""Words that are everyone's: of English, of shopping, of this task. They tell of no problem."""

from __future__ import annotations

_ENGLISH = """
a about above after again all also although always am an and another any anything are around as
at available back be because been before being below best better between both but buy by came can
check choose come comes could did do does doing done down each either else enough even every
everything exactly few find first following for found from full further get give given go goes good
had has have having he help her here him his how however i if in include included includes
including into is it item items its itself just keep kind kinds last least let like likely ll
looking looks made main make makes making many may me might mind more most much must my name need
needed needs new next no not nothing now number of off offer offered offering offers old on once
one only onto or order other others our out over own pair part per please preferably product
products put rather re read ready really recommend required requirement requirements requires right
s same say search see seek seeking sell seller sells set several shall she should show showing
similar since so some something specific specifically still such suitable support supports t take
tell than that the their them then there these they thing things this those three through to
together too two under until up upon us use used using ve very want wanted wants was way we well
were what when where whether which while who whose why will with within without work would yes you
your
"""

_SHOPPING = """
accept accepts amount applicable applied applies apply bag black blue bottle box brand budget
calculate capped cap cash category cheap cheaper cheapest cod color colors colour colours condition
conditions constraint constraints cost costing costs cotton coupon deal deals delivery description
details discount discounted dress eco exact exceed exceeds feature featuring final fixed flash
flashsale free freeshipping gold gray green grey high inch inches large laz lazflash lazmall less
lot low lower lowest mall mandatory matching material max maximum medium meet meets men min minimum
mode model money official option options orange original pack package paid pay payment percent
percentage peso pesos phone php piece pieces pink platform plus price priced prices pricing purchase
purple quality quantity query ranging rated rating red reviews rule rules sale service services
shipping ships shirt shoes shop shopping shops silver single size sized sizes sku small sold spend
stock store stores style sum threshold title titles total type types unit units valid value variant
variation voucher vouchers white women yellow
"""

COMMON_WORDS = frozenset((_ENGLISH + _SHOPPING).split())
