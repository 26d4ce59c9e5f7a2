// Invented notes: no patient, no person and no place of them exists.

export const EXAMPLES = {
  es: `INFORME DE ALTA
Paciente: Leocadia Brañosera Quintanal
Fecha de ingreso: 14/03/2021. NHC: 4471902
Domicilio: calle de la Alondra 27, Villarrubia. Teléfono: 612 345 678

Motivo de consulta:
Mujer de 71 años que acude por disnea y dolor torácico desde hace tres días.

Antecedentes:
Hipertensión arterial y diabetes mellitus tipo 2. Madre con cáncer de mama. No alergias conocidas.

Exploración:
TA 142/86 mmHg, temperatura 38,2 ºC, SatO2 91 %. Crepitantes en base derecha. No edemas.

Pruebas complementarias:
Proteína C reactiva 12,4 mg/dL. Posible neumonía en lóbulo inferior derecho. Sin derrame pleural.

Tratamiento:
Amoxicilina 500 mg cada 8 horas y paracetamol 1 g si fiebre. Metformina 850 mg cada 12 horas.

Dra. Amapola Requejo Santurde, Hospital Virgen del Alcor
`,
  en: `DISCHARGE SUMMARY
Patient: Leocadia Thornwhistle
Date of admission: 03/14/2021. MRN: 4471902
Address: 27 Larkspur Lane, Millbrook Hollow. Phone: (555) 014-2278

Chief complaint:
71-year-old woman with shortness of breath and chest pain for three days.

Past medical history:
Hypertension and type 2 diabetes mellitus. Mother with breast cancer. No known allergies.

Physical examination:
BP 142/86 mmHg, temperature 38.2 °C, SpO2 91 %. Crackles at the right base. No oedema.

Laboratory:
C-reactive protein 12.4 mg/dL. Possible pneumonia of the right lower lobe. No pleural effusion.

Treatment:
Amoxicillin 500 mg every 8 hours and paracetamol 1 g if fever. Metformin 850 mg twice a day.

Dr. Poppy Ravenscroft, Alder Hill Hospital
`,
};
